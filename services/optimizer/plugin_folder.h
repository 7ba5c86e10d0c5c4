#pragma once

#include <string>
#include <vector>

#include "services/optimizer/plugin.h"

namespace ganymede::optimizer {

/// "plugins" beside the programs, where built-in plugins lie.
std::string default_plugin_folder();

/// Names of the plugins in `folder`, sorted: files `<name>.so`. Throws Error when the folder cannot be read.
std::vector<std::string> available_plugins(const std::string& folder);

/// Path of the plugin `name` in `folder`. Throws Error(usage) when `name` is not a plain name or there is no such
/// plugin, and says which there are; `key` is who asks.
std::string find_plugin(const std::string& folder, const std::string& name, const std::string& key = "optimizer.name");

/// A plugin's copy in the run directory.
struct PreparedPlugin {
  std::string name;  // that of the file, without ".so"
  Plugin plugin;
  std::string original;  // the file that a person gave
  std::string path;      // "plugins/adamw.<16 hexadecimal digits of its hash>.so", relative to the run directory
};

/// Copies the plugin `name` of `folder` into `run`/plugins under its hash (once), loads the copy, so that exactly what
/// will run is checked, and returns it. Throws Error.
PreparedPlugin prepare_plugin(const std::string& folder, const std::string& name, const std::string& run,
                              const std::string& key = "optimizer.name");

}  // namespace ganymede::optimizer
