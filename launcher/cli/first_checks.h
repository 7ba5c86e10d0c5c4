#pragma once

#include <string>
#include <vector>

namespace ganymede::cli {

/// What only the services can tell of a recipe, asked before anything of a run is made: that the optimizer's plugin is
/// there and takes the settings, and that a dataset that is packed already is one that the recipe asks for. Throws
/// Error with what is wrong.
void check_with_services(const std::string& recipe, const std::vector<std::string>& settings);

}  // namespace ganymede::cli
