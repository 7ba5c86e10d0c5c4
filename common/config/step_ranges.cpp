#include "common/config/step_ranges.h"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace ganymede::config {
namespace {

constexpr std::uint64_t most_steps = 1'000'000'000'000;  // as run.steps

std::optional<std::uint64_t> read_step(std::string_view text) {
  std::uint64_t step = 0;
  auto end = std::from_chars(text.data(), text.data() + text.size(), step);
  bool whole = end.ec == std::errc() && end.ptr == text.data() + text.size();
  return whole && step >= 1 && step <= most_steps ? std::optional(step) : std::nullopt;
}

}  // namespace

std::optional<StepRange> read_step_range(const std::string& text) {
  std::string_view all = text;
  std::size_t dash = all.find('-');
  auto first = read_step(all.substr(0, dash));
  auto last = dash == std::string_view::npos ? first : read_step(all.substr(dash + 1));
  if (!first || !last || *last < *first) return std::nullopt;
  return StepRange{*first, *last};
}

bool lists_step(const std::vector<std::string>& ranges, std::uint64_t step) {
  return std::any_of(ranges.begin(), ranges.end(), [step](const std::string& text) {
    auto range = read_step_range(text);
    return range && range->first <= step && step <= range->last;
  });
}

std::string too_late(const std::vector<std::string>& before, const std::vector<std::string>& now, std::uint64_t done) {
  std::string late;
  for (const std::string& text : now) {
    auto range = read_step_range(text);
    if (!range || range->first > done || std::find(before.begin(), before.end(), text) != before.end()) continue;
    late += (late.empty() ? "" : ", ") + text;
  }
  return late;
}

}  // namespace ganymede::config
