#pragma once

#include <string>
#include <vector>

/// What `ganymede-optimizer` says about plugins. Each returns the text to print and throws Error. `folder` empty: the
/// plugins beside the programs.
namespace ganymede::optimizer {

/// Copies the plugins that `run`/config.toml names into the run directory, checks them, and returns one JSON object:
/// {"plugins": [facts_json, with a "file" in the run directory], "hyper": {"adamw.beta1": value}}.
std::string prepare_run(const std::string& run);

struct Check {
  bool json = false;     // facts as prepare_run has them, not name and version
  bool running = false;  // the settings are changes of a run that lives: keys that are fixed are refused
};
/// Name and version of the plugins that a recipe with these settings ("key=value") names; they are loaded where they
/// lie and their settings are checked.
std::string check_recipe(const std::string& recipe, const std::vector<std::string>& settings, Check check = {});

/// One line a plugin, or {"folder", "plugins": [...]} with the objects of `describe_plugin`. A file that is no valid
/// plugin is listed with the reason, also one that crashes or that is not loaded within `seconds`.
std::string list_plugins(const std::string& folder, bool json, double seconds = 20);

/// Name, version, state slots and hyper-parameters with their ranges.
std::string describe_plugin(const std::string& folder, const std::string& name, bool json);

}  // namespace ganymede::optimizer
