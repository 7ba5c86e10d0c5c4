#pragma once

namespace ganymede::keeper {

/// Removes a file of the run directory, which is the current folder, if it is there. Throws Error.
void remove_run_file(const char* file);

}  // namespace ganymede::keeper
