#pragma once

#include <CLI/CLI.hpp>

namespace ganymede::cli {

/// Adds `ctl RUN status | where | stop | checkpoint | segments | restart` to the command line. Each prints its answer
/// and throws Error when the run is not alive (but for `status`) or refuses.
void add_ctl(CLI::App& app);

}  // namespace ganymede::cli
