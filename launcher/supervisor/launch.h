#pragma once

#include <string>

#include "launcher/supervisor/options.h"
#include "launcher/supervisor/supervisor.h"

namespace ganymede::launcher {

/// One run of a job on this node, from a ready or an unmade run directory (the current folder) to its last line: what
/// `ganymede-launcher` does. `programs`: folder of the programs. Throws Error.
Outcome launch(const Options& options, const std::string& programs);

}  // namespace ganymede::launcher
