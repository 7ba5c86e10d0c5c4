#include "services/checkpoint/key.h"

#include <fmt/format.h>

#include <charconv>

namespace ganymede::checkpoint {
namespace {

constexpr std::size_t first_digits = 16, step_digits = 12;
constexpr std::string_view family_prefix = "step.";

template <class T>
std::optional<T> number(std::string_view digits, std::size_t wanted) {
  T value = 0;
  if (digits.size() != wanted || digits.front() == '-') return {};
  auto end = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (end.ec != std::errc() || end.ptr != digits.data() + digits.size()) return {};
  return value;
}

}  // namespace

std::string encode(const Key& key) { return fmt::format("{}/{}/{:016}", key.slot, key.parameter, key.first); }

std::optional<Key> decode(std::string_view text) {
  std::size_t slot = text.find('/'), first = text.rfind('/');
  if (slot == std::string_view::npos || slot == 0 || first <= slot + 1) return {};
  auto element = number<std::int64_t>(text.substr(first + 1), first_digits);
  if (!element) return {};
  return Key{std::string(text.substr(0, slot)), std::string(text.substr(slot + 1, first - slot - 1)), *element};
}

std::string family_name(std::uint64_t step) { return fmt::format("{}{:012}", family_prefix, step); }

std::optional<std::uint64_t> family_step(std::string_view name) {
  if (!name.starts_with(family_prefix)) return {};
  return number<std::uint64_t>(name.substr(family_prefix.size()), step_digits);
}

std::string part_folder(const std::string& checkpoints, int rank) {
  return fmt::format("{}/rank.{}", checkpoints, rank);
}

}  // namespace ganymede::checkpoint
