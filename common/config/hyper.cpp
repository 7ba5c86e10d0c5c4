#include <algorithm>
#include <set>
#include <string_view>

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

std::vector<std::string> optimizers_of(const Optimizer& optimizer) {
  std::set<std::string> others;
  for (const auto& [name, group] : optimizer.groups) {
    if (!group.optimizer.empty() && group.optimizer != optimizer.name) others.insert(group.optimizer);
  }
  std::vector<std::string> all = {optimizer.name};
  all.insert(all.end(), others.begin(), others.end());
  return all;
}

std::vector<std::string> hyper_names(const Optimizer& optimizer) {
  std::vector<std::string> used = optimizers_of(optimizer), names;
  for (const auto& entry : optimizer.hyper) {  // a map: by name
    std::string plugin = entry.first.substr(0, entry.first.find('.'));
    if (std::find(used.begin(), used.end(), plugin) != used.end()) names.push_back(entry.first);
  }
  return names;
}

std::vector<double> hyper_values(const Optimizer& optimizer) {
  std::vector<double> values;
  for (const std::string& name : hyper_names(optimizer)) values.push_back(optimizer.hyper.at(name));
  return values;
}

std::string group_name(const std::string& key) {
  constexpr std::string_view section = "optimizer.group.";
  if (!key.starts_with(section)) return "";
  std::string name = key.substr(section.size());
  std::size_t dot = name.rfind('.');
  if (dot == std::string::npos || !is_plain(std::string_view(name).substr(0, dot))) return "";
  return name.substr(0, dot);
}

std::vector<Field> group_fields(const std::string& name, OptimizerGroup& group) {
  std::string section = "optimizer.group." + name + ".";
  std::vector<Field> fields;
  if (name != rest_group) {
    fields.push_back(
        {section + "match", &group.match, {}, "names of parameters; * and ? stand for any text and letter"});
  }
  const char* whose = name == rest_group ? "plugin that updates what optimizer.name does not"
                                         : "plugin of the group; empty: optimizer.name";
  fields.push_back({section + "optimizer", &group.optimizer, {}, whose});
  fields.push_back({section + "lr", &group.lr, {-1, 1e3, false}, "learning rate after the warm-up; -1: optimizer.lr"});
  fields.push_back({section + "weight_decay",
                    &group.weight_decay,
                    {-1, 1e3, false},
                    "on all of the group; -1: optimizer.weight_decay, on its matrices"});
  return fields;
}

}  // namespace ganymede::config
