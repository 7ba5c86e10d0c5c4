#pragma once

#include <string>
#include <vector>

#include "common/config/config.h"

namespace ganymede::cli {

/// State slots of the configured optimizer, as its own program tells: plugins are loaded there and nowhere else.
/// Throws Error with what that program says when the plugin is not there or cannot be used.
std::vector<std::string> optimizer_slots(const config::Optimizer& optimizer);

}  // namespace ganymede::cli
