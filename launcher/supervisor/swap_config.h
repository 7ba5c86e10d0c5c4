#pragma once

#include <string>
#include <vector>

#include "common/config/config.h"
#include "common/placement/update_groups.h"

namespace ganymede::launcher {

/// A setting of `swap-optimizer` by its whole key: "lr=1e-2" is that of optimizer.lr, "beta2=0.95" that of
/// optimizer.NAME.beta2, "muon.momentum=0.9" that of optimizer.muon.momentum, "warm_steps=10" that of swap.warm_steps.
/// Throws Error(usage) for what a swap cannot set, a key of another section among it.
std::string swap_setting(const std::string& setting, const std::string& name);

/// optimizer.threads and the like, which no swap changes.
bool stays_with_the_run(const std::string& key);

/// The configuration with settings ("key=value", in order). `scratch`: a file that is written, read and removed. Throws
/// Error(usage) as config::load does; in its place the text names the settings.
config::Config with_settings(const config::Config& config, const std::vector<std::string>& settings,
                             const std::string& scratch);

/// The one that an effective configuration says. `scratch` and errors as of with_settings.
config::Config config_of_text(const std::string& effective, const std::string& scratch);

/// The configuration in force with optimizer `name` and `settings` ("key=value", in order). With another name the group
/// of the rest goes, unless `settings` name it. Throws Error(usage) as with_settings does.
config::Config swapped_config(const config::Config& in_force, const std::string& name,
                              const std::vector<std::string>& settings, const std::string& scratch);

/// placement::add_rest; an optimizer that goes on updating the rest keeps its learning rate.
void add_rest(config::Config& swapped, const config::Config& in_force,
              const std::vector<placement::OptimizerFacts>& facts);

/// The first key, but [optimizer] and [swap], in which the two differ; empty: none.
std::string other_difference(const config::Config& in_force, const config::Config& swapped);

}  // namespace ganymede::launcher
