#pragma once

#include <string>

#include "launcher/supervisor/options.h"
#include "launcher/supervisor/outcome.h"

namespace ganymede::launcher {

/// What `ganymede-launcher` does on a node other than 0: meets the coordinator, makes this node's part of the run
/// ready, runs its services as the coordinator wishes. Throws Error.
Outcome launch_node(const Options& options, const std::string& programs);

}  // namespace ganymede::launcher
