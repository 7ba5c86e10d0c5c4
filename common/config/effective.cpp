#include "common/config/config.h"
#include "common/config/fields.h"

#include <fmt/format.h>

namespace ganymede::config {

std::string effective(const Config& config) {
  Config copy = config;
  std::string text = "# The whole configuration of this run. Each key has its value, given or standard.\n";
  std::string section;
  for (const auto& field : fields(copy)) {
    if (section_of(field.key) != section) {
      section = section_of(field.key);
      text += fmt::format("\n[{}]\n", section);
    }
    std::string limits = allowed(field);
    text += fmt::format("{} = {}  # {}{}\n", name_of(field.key), to_toml(field), field.help,
                        limits.empty() ? "" : fmt::format(" ({})", limits));
  }
  return text;
}

std::vector<FieldHelp> keys() {
  Config standard;
  std::vector<FieldHelp> list;
  for (const auto& field : fields(standard)) {
    list.push_back({field.key, type_name(field), to_toml(field), allowed(field), field.help});
  }
  return list;
}

}  // namespace ganymede::config
