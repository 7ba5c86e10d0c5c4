#pragma once

#include <string>
#include <vector>

#include "common/placement/update_groups.h"

namespace ganymede::cli {

/// What the plugins of a recipe with these settings say of themselves, as their own program tells: they are loaded
/// there and nowhere else. Throws Error with what that program says when a plugin is not there or cannot be used.
std::vector<placement::OptimizerFacts> optimizer_facts(const std::string& recipe,
                                                       const std::vector<std::string>& settings);

}  // namespace ganymede::cli
