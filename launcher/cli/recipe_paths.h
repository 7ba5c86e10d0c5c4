#pragma once

#include <string>
#include <vector>

#include "common/config/config.h"

namespace ganymede::cli {

/// The programs of a run work in its run directory. So every path of a recipe that is relative to `folder` (where the
/// person works) becomes absolute, as settings "key=value" that come after all others.
std::vector<std::string> absolute_paths(const config::Config& config, const std::string& folder);

/// "runs/<file stem>", or the run directory itself when the recipe is its config.toml.
std::string default_run(const std::string& recipe);

/// What a person named as a recipe; for a run directory the configuration in it.
std::string recipe_file(const std::string& named);

/// Throws Error(usage) for a run directory with control characters (a line end, a tab) in its path: no line that names
/// it could be read, or pasted.
void check_run_folder(const std::string& run);

/// Throws Error(usage) when `config`, read from `recipe`, names no dataset, or one
/// that is neither there nor can be packed: nothing of a run is made then.
void check_dataset_named(const config::Config& config, const std::string& recipe);

}  // namespace ganymede::cli
