#include "common/service/settings.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "common/base/error.h"
#include "common/config/assign.h"
#include "common/config/fields.h"

namespace ganymede::service {
namespace {

bool is_own_hyper(const config::Optimizer& optimizer, const std::string& name) {
  return name.starts_with(optimizer.name + ".");
}

}  // namespace

step_protocol::Setting setting_of(const config::Config& config) {
  const config::Optimizer& optimizer = config.optimizer;
  step_protocol::Setting setting;
  setting.lr = optimizer.lr;
  setting.weight_decay = optimizer.weight_decay;
  setting.clip_norm = optimizer.clip_norm;
  std::vector<double> hyper = config::hyper_values(optimizer);
  if (hyper.size() > step_protocol::most_hyper_parameters)
    fail_usage("Optimizer '{}' has {} hyper-parameters; at most {} are possible.", optimizer.name, hyper.size(),
               step_protocol::most_hyper_parameters);
  setting.hyper_count = hyper.size();
  std::copy(hyper.begin(), hyper.end(), setting.hyper);
  return step_protocol::sealed(setting);
}

void apply(const step_protocol::Setting& setting, config::Config& config) {
  config::Optimizer& optimizer = config.optimizer;
  std::size_t count = config::hyper_values(optimizer).size();
  if (count != setting.hyper_count)
    fail("Change {} has {} hyper-parameters, but the configuration has {} for optimizer '{}'.", setting.number,
         setting.hyper_count, count, optimizer.name);
  optimizer.lr = setting.lr;
  optimizer.weight_decay = setting.weight_decay;
  optimizer.clip_norm = setting.clip_norm;
  const double* next = setting.hyper;
  for (auto& [name, value] : optimizer.hyper)  // a map: by name, as hyper_values
    if (is_own_hyper(optimizer, name)) value = *next++;
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
  for (const auto& [name, value] : optimizer.hyper)
    if (is_own_hyper(optimizer, name)) values["optimizer." + name] = value;
  return values;
}

void change(config::Config& config, const std::string& key, double value) {
  std::vector<std::string> keys;
  for (const auto& entry : changeable_values(config)) keys.push_back(entry.first);
  if (std::find(keys.begin(), keys.end(), key) == keys.end())
    fail_usage("Key '{}' cannot change while the run runs; those that can: {}.", key, fmt::join(keys, ", "));
  for (const config::Field& field : config::fields(config))
    if (field.key == key) config::assign(field, value, "A running job");
}

}  // namespace ganymede::service
