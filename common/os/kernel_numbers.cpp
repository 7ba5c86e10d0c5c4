#include "common/os/kernel_numbers.h"

#include <charconv>
#include <fstream>
#include <sstream>
#include <string>

namespace ganymede::os {
namespace {

constexpr int highest_listed = 1 << 16;  // of cores and nodes: a garbled range must not fill the memory

/// The whole word as a number; nothing for a sign, a fraction or anything else.
std::optional<std::uint64_t> whole_number(std::string_view word) {
  std::uint64_t value = 0;
  auto [end, fault] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (fault != std::errc{} || end != word.data() + word.size()) return std::nullopt;
  return value;
}

}  // namespace

std::optional<std::uint64_t> kernel_entry(const std::filesystem::path& path, std::string_view name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    for (std::string word, value; words >> word;) {
      if (word == name) return words >> value ? whole_number(value) : std::nullopt;
    }
  }
  return std::nullopt;
}

std::optional<std::uint64_t> kernel_number(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string word;
  return file >> word ? whole_number(word) : std::nullopt;
}

std::vector<int> kernel_list(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  std::vector<int> numbers;
  std::istringstream parts(line);
  for (std::string part; std::getline(parts, part, ',');) {
    auto dash = part.find('-');
    auto first = whole_number(part.substr(0, dash));
    auto last = dash == std::string::npos ? first : whole_number(part.substr(dash + 1));
    if (!first || !last || *last > highest_listed) continue;
    for (std::uint64_t i = *first; i <= *last; ++i) numbers.push_back(static_cast<int>(i));
  }
  return numbers;
}

}  // namespace ganymede::os
