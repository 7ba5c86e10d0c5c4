#include "common/service/json_fields.h"

#include <limits>

#include "common/base/error.h"
#include "common/base/run_command.h"

namespace ganymede::service {

JsonFields::JsonFields(std::string file, const std::string& text, std::string way_out)
    : file_(std::move(file)), way_out_(std::move(way_out)), object_(nlohmann::json::parse(text, nullptr, false)) {
  if (!object_.is_object()) wrong("it is not a JSON object");
}

void JsonFields::wrong(const std::string& what) const { fail("{} is damaged: {}; {}.", file_, what, way_out_); }

const nlohmann::json& JsonFields::at(const char* key) const {
  auto found = object_.find(key);
  if (found == object_.end()) wrong(fmt::format("\"{}\" is missing", key));
  return *found;
}

std::uint64_t JsonFields::number(const char* key) const {
  const nlohmann::json& value = at(key);
  if (!value.is_number_unsigned()) wrong(fmt::format("\"{}\" is not a whole number", key));
  return value.get<std::uint64_t>();
}

int JsonFields::small_number(const char* key) const {
  std::uint64_t value = number(key);
  if (value > static_cast<std::uint64_t>(std::numeric_limits<int>::max())) {
    wrong(fmt::format("\"{}\" is {}, too large", key, value));
  }
  return static_cast<int>(value);
}

double JsonFields::real(const char* key) const {
  const nlohmann::json& value = at(key);
  if (value.is_null()) return std::numeric_limits<double>::quiet_NaN();
  if (!value.is_number()) wrong(fmt::format("\"{}\" is not a number", key));
  return value.get<double>();
}

std::string JsonFields::text(const char* key) const {
  const nlohmann::json& value = at(key);
  if (!value.is_string()) wrong(fmt::format("\"{}\" is not a text", key));
  return value.get<std::string>();
}

std::vector<std::string> JsonFields::texts(const char* key) const {
  const nlohmann::json& value = at(key);
  if (!value.is_array()) wrong(fmt::format("\"{}\" is not a list", key));
  std::vector<std::string> texts;
  for (const nlohmann::json& item : value) {
    if (!item.is_string()) wrong(fmt::format("\"{}\" holds something that is not a text", key));
    texts.push_back(item.get<std::string>());
  }
  return texts;
}

std::vector<int> JsonFields::small_numbers(const char* key) const {
  const nlohmann::json& value = at(key);
  if (!value.is_array()) wrong(fmt::format("\"{}\" is not a list", key));
  std::vector<int> numbers;
  for (const nlohmann::json& item : value) {
    bool small = item.is_number_unsigned() && item.get<std::uint64_t>() <= std::numeric_limits<int>::max();
    if (!small) wrong(fmt::format("\"{}\" holds something that is not a small whole number", key));
    numbers.push_back(item.get<int>());
  }
  return numbers;
}

JsonFields JsonFields::object(const char* key) const {
  const nlohmann::json& value = at(key);
  if (!value.is_object()) wrong(fmt::format("\"{}\" is not a JSON object", key));
  JsonFields fields = *this;
  fields.object_ = value;
  return fields;
}

std::vector<JsonFields> JsonFields::objects(const char* key) const {
  const nlohmann::json& value = at(key);
  if (!value.is_array()) wrong(fmt::format("\"{}\" is not a list", key));
  std::vector<JsonFields> objects;
  for (const nlohmann::json& item : value) {
    if (!item.is_object()) wrong(fmt::format("\"{}\" holds something that is not a JSON object", key));
    objects.emplace_back(*this).object_ = item;
  }
  return objects;
}

std::string json_text(const nlohmann::json& object, const std::string& file) {
  try {
    return object.dump(2) + "\n";
  } catch (const nlohmann::json::exception& error) {
    fail("{} cannot be written: {}.", file, sentence_of(error));
  }
}

}  // namespace ganymede::service
