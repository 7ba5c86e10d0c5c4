#include <algorithm>

#include "common/config/config.h"
#include "common/config/fields.h"

namespace ganymede::config {
namespace {

bool is_plain(std::string_view word) {
  auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
  return !word.empty() && std::all_of(word.begin(), word.end(), plain);
}

}  // namespace

std::string hyper_name(const std::string& key) {
  constexpr std::string_view section = "optimizer.";
  if (!key.starts_with(section)) return "";
  std::string name = key.substr(section.size());
  std::size_t dot = name.find('.');
  if (dot == std::string::npos || !is_plain(std::string_view(name).substr(0, dot))) return "";
  return is_plain(std::string_view(name).substr(dot + 1)) ? name : "";
}

Field hyper_field(const std::string& name, double& value) {
  std::string plugin = name.substr(0, name.find('.'));
  return {"optimizer." + name,
          &value,
          {-without_end, without_end, false},
          "hyper-parameter, see `ganymede optimizer describe " + plugin + "`"};
}

std::vector<double> hyper_values(const Optimizer& optimizer) {
  std::vector<double> values;
  for (const auto& [name, value] : optimizer.hyper) {  // a map: by name
    if (name.starts_with(optimizer.name + ".")) values.push_back(value);
  }
  return values;
}

}  // namespace ganymede::config
