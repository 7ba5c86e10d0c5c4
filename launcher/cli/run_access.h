#pragma once

#include <string>

namespace ganymede::cli {

/// Changes into a run directory, because socket paths are relative to it. Throws Error(usage) when it is none.
void enter_run(const std::string& run);

/// Whether a keeper lives in the current run directory: something listens on its socket.
bool run_is_alive();

/// Whether the launcher of the current run directory has made its socket.
bool launcher_serves();

}  // namespace ganymede::cli
