#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace ganymede::service {

/// Typed access to the fields of a JSON file that may be damaged: every miss is an Error naming file, field and way
/// out. Included by the .cpp files of this folder alone.
class JsonFields {
 public:
  /// `way_out` ends each Error: what a person can do. Throws Error when the text is not a JSON object.
  JsonFields(std::string file, const std::string& text, std::string way_out);

  bool has(const char* key) const { return object_.contains(key); }
  std::uint64_t number(const char* key) const;
  int small_number(const char* key) const;  // 0 to 2^31 - 1
  double real(const char* key) const;       // null reads as NaN
  std::string text(const char* key) const;
  std::vector<std::string> texts(const char* key) const;
  std::vector<int> small_numbers(const char* key) const;  // each as small_number
  JsonFields object(const char* key) const;
  std::vector<JsonFields> objects(const char* key) const;
  [[noreturn]] void wrong(const std::string& what) const;

 private:
  const nlohmann::json& at(const char* key) const;
  std::string file_, way_out_;
  nlohmann::json object_;
};

/// The file as text. Throws Error when a string in it is not UTF-8.
std::string json_text(const nlohmann::json& object, const std::string& file);

}  // namespace ganymede::service
