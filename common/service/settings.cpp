#include "common/service/settings.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "common/base/error.h"
#include "common/config/assign.h"
#include "common/config/fields.h"

namespace ganymede::service {

step_protocol::Setting setting_of(const config::Config& config) {
  const config::Optimizer& optimizer = config.optimizer;
  step_protocol::Setting setting;
  setting.lr = optimizer.lr;
  setting.weight_decay = optimizer.weight_decay;
  setting.clip_norm = optimizer.clip_norm;
  for (const auto& [name, group] : optimizer.groups)
    setting.groups[setting.group_count++] = {group.lr, group.weight_decay};
  std::vector<double> hyper = config::hyper_values(optimizer);
  if (hyper.size() > step_protocol::most_hyper_parameters)
    fail_usage("The optimizers {} have {} hyper-parameters together; at most {} are possible.",
               fmt::join(config::optimizers_of(optimizer), ", "), hyper.size(), step_protocol::most_hyper_parameters);
  setting.hyper_count = hyper.size();
  std::copy(hyper.begin(), hyper.end(), setting.hyper);
  return step_protocol::sealed(setting);
}

void apply(const step_protocol::Setting& setting, config::Config& config) {
  config::Optimizer& optimizer = config.optimizer;
  std::vector<std::string> names = config::hyper_names(optimizer);
  if (names.size() != setting.hyper_count || optimizer.groups.size() != setting.group_count)
    fail("Change {} has {} hyper-parameters and {} groups, but the configuration has {} and {}.", setting.number,
         setting.hyper_count, setting.group_count, names.size(), optimizer.groups.size());
  optimizer.lr = setting.lr;
  optimizer.weight_decay = setting.weight_decay;
  optimizer.clip_norm = setting.clip_norm;
  for (std::size_t i = 0; i < names.size(); ++i) optimizer.hyper[names[i]] = setting.hyper[i];
  const step_protocol::GroupValues* values = setting.groups;
  for (auto& [name, group] : optimizer.groups) {  // a map: by name, as in setting_of
    group.lr = values->lr;
    group.weight_decay = values->weight_decay;
    ++values;
  }
}

config::Config config_in_force(const config::Config& config, const step_protocol::ControlBlock& block) {
  config::Config changed = config;
  apply(step_protocol::setting_of(block, step_protocol::in_force(block).number), changed);
  return changed;
}

std::map<std::string, double> changeable_values(const config::Config& config) {
  const config::Optimizer& optimizer = config.optimizer;
  std::map<std::string, double> values = {{"optimizer.lr", optimizer.lr},
                                          {"optimizer.weight_decay", optimizer.weight_decay},
                                          {"optimizer.clip_norm", optimizer.clip_norm}};
  for (const std::string& name : config::hyper_names(optimizer)) values["optimizer." + name] = optimizer.hyper.at(name);
  for (const auto& [name, group] : optimizer.groups) {
    values["optimizer.group." + name + ".lr"] = group.lr;
    values["optimizer.group." + name + ".weight_decay"] = group.weight_decay;
  }
  return values;
}

void change(config::Config& config, const std::string& key, double value) {
  std::vector<std::string> keys;
  for (const auto& entry : changeable_values(config)) keys.push_back(entry.first);
  if (std::find(keys.begin(), keys.end(), key) == keys.end())
    fail_usage("Key '{}' cannot change while the run runs; those that can: {}.", key, fmt::join(keys, ", "));
  if (value < 0 && value != -1 && !config::group_name(key).empty())
    fail_usage("Key '{}' is {}, but has to be 0 or more, or -1 for what [optimizer] has.", key, value);
  for (const config::Field& field : config::fields(config))
    if (field.key == key) config::assign(field, value, "A running job");
}

}  // namespace ganymede::service
