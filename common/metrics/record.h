#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ganymede::metrics {

/// One JSON object, built key by key in the order of the calls. Doubles have 17 significant digits, so they read back
/// with the same bits; NaN and infinity, which JSON does not have, become null. Text that is not UTF-8 has the bytes
/// that do not fit replaced.
class Record {
 public:
  Record& set(std::string_view key, double value);
  Record& set(std::string_view key, std::int64_t value);
  Record& set(std::string_view key, std::uint64_t value);
  Record& set(std::string_view key, int value) { return set(key, std::int64_t{value}); }
  Record& set(std::string_view key, bool value);
  Record& set(std::string_view key, std::string_view value);
  Record& set(std::string_view key, const char* value) { return set(key, std::string_view(value)); }
  /// An array of numbers.
  Record& set(std::string_view key, const std::vector<double>& values);
  /// An object of numbers, for example milliseconds by lane.
  Record& set(std::string_view key, const std::vector<std::pair<std::string, double>>& values);
  /// An array of objects.
  Record& set(std::string_view key, const std::vector<Record>& values);
  /// The object on one line, without a line end.
  std::string json() const { return "{" + body_ + "}"; }

 private:
  Record& raw(std::string_view key, const std::string& json);
  std::string body_;
};

}  // namespace ganymede::metrics
