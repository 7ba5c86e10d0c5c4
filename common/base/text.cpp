#include "common/base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace ganymede {
namespace {

/// Three significant digits without zeros at the end of a fraction.
std::string three_digits(double value) {
  double size = std::abs(value);
  std::string text = fmt::format("{:.{}f}", value, size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
  if (text.find('.') == std::string::npos) return text;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

/// Edit distance in which a swap of two neighbours counts one.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

}  // namespace

std::string human_bytes(double bytes) {
  static constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  std::size_t unit = 0;
  while (std::abs(bytes) >= 1023.5 && unit + 1 < std::size(units)) {
    bytes /= 1024;
    ++unit;
  }
  return fmt::format("{} {}", three_digits(bytes), units[unit]);
}

std::string human_seconds(double seconds) {
  if (seconds < 0.9995) return fmt::format("{} ms", three_digits(seconds * 1e3));
  auto two_digits = [](double value) { return fmt::format("{:.{}f}", value, value < 9.95 ? 1 : 0); };
  if (seconds < 99.5) return two_digits(seconds) + " s";
  if (seconds < 99.5 * 60) return two_digits(seconds / 60) + " min";
  return two_digits(seconds / 3600) + " h";
}

std::string with_commas(std::int64_t value) {
  std::string text = std::to_string(value);
  std::size_t first = value < 0 ? 1 : 0;
  for (std::size_t at = text.size(); at > first + 3;) {
    at -= 3;
    text.insert(at, ",");
  }
  return text;
}

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  std::size_t best = word.size() / 2 + 1;
  std::string found;
  for (const auto& candidate : candidates) {
    auto steps = distance(word, candidate);
    if (steps < best) {
      best = steps;
      found = candidate;
    }
  }
  return found;
}

}  // namespace ganymede
