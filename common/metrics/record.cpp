#include "common/metrics/record.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace ganymede::metrics {
namespace {

std::string number(double value) { return std::isfinite(value) ? fmt::format("{:.17g}", value) : "null"; }

std::string json_text(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

Record& Record::raw(std::string_view key, const std::string& json) {
  body_ += fmt::format("{}{}: {}", body_.empty() ? "" : ", ", json_text(key), json);
  return *this;
}

Record& Record::set(std::string_view key, double value) { return raw(key, number(value)); }
Record& Record::set(std::string_view key, std::int64_t value) { return raw(key, std::to_string(value)); }
Record& Record::set(std::string_view key, std::uint64_t value) { return raw(key, std::to_string(value)); }
Record& Record::set(std::string_view key, bool value) { return raw(key, value ? "true" : "false"); }
Record& Record::set(std::string_view key, std::string_view value) { return raw(key, json_text(value)); }

Record& Record::set(std::string_view key, const std::vector<double>& values) {
  std::vector<std::string> items;
  for (double value : values) items.push_back(number(value));
  return raw(key, fmt::format("[{}]", fmt::join(items, ", ")));
}

Record& Record::set(std::string_view key, const std::vector<std::pair<std::string, double>>& values) {
  std::vector<std::string> items;
  for (const auto& [name, value] : values) items.push_back(json_text(name) + ": " + number(value));
  return raw(key, fmt::format("{{{}}}", fmt::join(items, ", ")));
}

Record& Record::set(std::string_view key, const std::vector<Record>& values) {
  std::string json;
  for (const Record& value : values) json += (json.empty() ? "" : ", ") + value.json();
  return raw(key, "[" + json + "]");
}

}  // namespace ganymede::metrics
