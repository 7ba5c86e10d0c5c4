#include <algorithm>
#include <filesystem>
#include <map>

#include "common/base/error.h"
#include "common/base/text.h"
#include "common/config/assign.h"
#include "common/config/config.h"
#include "common/config/cross_checks.h"
#include "common/config/fields.h"
#include "common/os/files.h"

namespace ganymede::config {
namespace {

/// A Config while it is read, with the place that each key's value came from.
struct Draft {
  Config config;
  std::vector<Field> all = fields(config);
  std::map<std::string, std::string> origins;

  Draft() = default;
  Draft(const Draft&) = delete;  // the fields point into this one's config
  Draft& operator=(const Draft&) = delete;

  const Field* find(const std::string& key) const {
    auto found = std::find_if(all.begin(), all.end(), [&](const Field& f) { return f.key == key; });
    return found == all.end() ? nullptr : &*found;
  }

  bool has_section(const std::string& name) const {
    return std::any_of(all.begin(), all.end(), [&](const Field& f) { return section_of(f.key) == name; });
  }

  /// Takes a key of a plugin's section, which only the plugin knows; nullptr when it is none.
  const Field* find_hyper(const std::string& key) {
    std::string name = hyper_name(key);
    if (name.empty()) return nullptr;
    all.push_back(hyper_field(name, config.optimizer.hyper[name]));
    return &all.back();
  }

  /// Takes up the keys of a group of parameters when `key` is in the section of one.
  void find_group(const std::string& key) {
    std::string name = group_name(key);
    if (name.empty() || config.optimizer.groups.contains(name)) return;
    OptimizerGroup& group = config.optimizer.groups[name];
    if (name == rest_group) group.optimizer = "adamw";
    for (Field& field : group_fields(name, group)) all.push_back(std::move(field));
  }

  /// The known key that was probably meant, or "".
  std::string meant(const std::string& key) const;
  void set(const std::string& key, const Value& value, const std::string& where);
};

/// Whether two names differ by one slip: a letter that is another, left out or added, or two that are swapped.
bool one_slip_apart(std::string_view a, std::string_view b) {
  while (!a.empty() && !b.empty() && a.front() == b.front()) a.remove_prefix(1), b.remove_prefix(1);
  while (!a.empty() && !b.empty() && a.back() == b.back()) a.remove_suffix(1), b.remove_suffix(1);
  return (a.size() <= 1 && b.size() <= 1) || (a.size() == 2 && b.size() == 2 && a[0] == b[1] && a[1] == b[0]);
}

/// Names are compared inside the given section first, then everywhere: "lr" is near "optimizer.lr". There they have to
/// be nearer, for among so many one is always a little like it.
std::string Draft::meant(const std::string& key) const {
  std::vector<std::string> sections, here, names, all_keys;
  for (const auto& f : all) {
    sections.push_back(section_of(f.key));
    all_keys.push_back(f.key);
    names.push_back(name_of(f.key));
  }
  std::string section = section_of(key);
  if (find(section)) return section;
  if (!has_section(section)) section = nearest(section, sections);
  for (const auto& f : all) {
    if (section_of(f.key) == section) here.push_back(name_of(f.key));
  }
  if (std::string name = nearest(name_of(key), here); !name.empty())
    return section.empty() ? name : section + "." + name;
  std::string name = nearest(name_of(key), names);
  if (name.empty() || !one_slip_apart(name_of(key), name)) return "";
  return all_keys[static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin())];
}

void Draft::set(const std::string& key, const Value& value, const std::string& where) {
  find_group(key);
  const Field* field = find(key);
  if (!field) field = find_hyper(key);
  if (field) {
    assign(*field, value, where);
    origins[key] = where;
    return;
  }
  if (has_section(key)) fail_usage("{}: '{}' is a section with keys of its own, not a key.", where, key);
  if (key == "wire.gather") {
    fail_usage("{}: key 'wire.gather' is not known; 'wire.dense_gather' and 'wire.expert_gather' have replaced it.",
               where);
  }
  std::string near = meant(key);
  if (near.empty()) fail_usage("{}: key '{}' is not known.", where, key);
  fail_usage("{}: key '{}' is not known; did you mean '{}'?", where, key, near);
}

std::string read_recipe(const std::string& file) {
  std::error_code error;
  if (!std::filesystem::exists(file, error)) fail_usage("Recipe {} does not exist.", file);
  if (!std::filesystem::is_regular_file(file, error)) fail_usage("Recipe {} is not a file.", file);
  try {
    return os::read_file(file);
  } catch (const Error& e) {
    fail_usage("Recipe {}", e.what());
  }
}

/// The value of a setting: as TOML where that fits the key, else as bare text.
Value setting_value(const Field* field, const std::string& text, const std::string& where) {
  bool is_toml = false;
  Value value = read_value(text, is_toml);
  bool takes_text = field && (type_name(*field) == "text" || type_name(*field) == "choice");
  bool is_text = is_toml && std::holds_alternative<std::string>(value);
  bool bare = takes_text ? !is_text : !is_toml;
  if (!bare) return value;
  Value as_text = read_value(toml_text(text), is_toml);
  if (!is_toml) fail_usage("{}: the value is not UTF-8 text.", where);
  return as_text;
}

void apply_setting(Draft& draft, const std::string& setting) {
  std::string where = "--set " + setting;
  auto equals = setting.find('=');
  if (equals == std::string::npos || equals == 0) {
    fail_usage("{}: a setting is written key=value, for example --set optimizer.lr=3e-4.", where);
  }
  std::string key = setting.substr(0, equals);
  draft.find_group(key);
  draft.set(key, setting_value(draft.find(key), setting.substr(equals + 1), where), where);
}

}  // namespace

Config load(const std::string& file, const std::vector<std::string>& settings) {
  Draft draft;
  for (const auto& leaf : read_toml(read_recipe(file), file)) {
    draft.set(leaf.key, leaf.value, fmt::format("{}:{}", file, leaf.line));
  }
  for (const auto& setting : settings) apply_setting(draft, setting);
  if (!draft.origins.contains("run.name")) draft.config.run.name = std::filesystem::path(file).stem().string();
  cross_check(draft.config, [&](const std::string& key) {
    auto found = draft.origins.find(key);
    return found == draft.origins.end() ? file : found->second;
  });
  return draft.config;
}

}  // namespace ganymede::config
