#pragma once

#include <map>
#include <string>

#include "common/config/config.h"
#include "common/step_protocol/change.h"

/// The part of the configuration that a person may change while the job runs: optimizer.lr, optimizer.weight_decay,
/// optimizer.clip_norm and the hyper-parameters of the run's plugin.
namespace ganymede::service {

/// Change 0: what the configuration says.
step_protocol::Setting setting_of(const config::Config& config);

/// Puts the values of a setting of the same plugin into a configuration. Throws Error when it is of another one.
void apply(const step_protocol::Setting& setting, config::Config& config);

/// The configuration with the setting that the newest decided step of a cell follows.
config::Config config_in_force(const config::Config& config, const step_protocol::ControlBlock& block);

/// What can change, by key ("optimizer.lr").
std::map<std::string, double> changeable_values(const config::Config& config);

/// Gives a key another value. Throws Error(usage) when it cannot change while a run runs, naming those that can, or
/// when the value is out of the configuration's range; which range a hyper-parameter has only the plugin knows.
void change(config::Config& config, const std::string& key, double value);

}  // namespace ganymede::service
