#pragma once

namespace ganymede::keeper {

/// `ganymede-keeper --run DIR -- LAUNCHER ARGUMENT…`: makes the run directory, takes its lock, holds its segments and
/// keeps a launcher running in it. Returns the launcher's exit code; 2 when the directory is in use or the usage is
/// wrong, 1 when the launcher cannot be kept alive. When it returns, no process that it started is left.
int program(int argc, char** argv);

}  // namespace ganymede::keeper
