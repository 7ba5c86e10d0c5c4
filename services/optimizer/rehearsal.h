#pragma once

#include <map>
#include <string>

#include "services/optimizer/plugin_folder.h"

namespace ganymede::optimizer {

/// Two updates of a small matrix, as a query projection and as a weight of no attention, by every function of the
/// plugin: one that crashes, hangs, gives up, or makes values that are not finite out of small ones shows it here,
/// before it is given parameters. `hyper`: values by name, "adamw.beta1". Runs the plugin's code (plugin_guard.h).
/// Throws Error that names the plugin's file and the function.
void rehearse(const PreparedPlugin& prepared, const std::map<std::string, double>& hyper);

}  // namespace ganymede::optimizer
