#pragma once

#include <string>

namespace ganymede::cli {

/// `ganymede ctl RUN drain`: the run finishes its step, writes a checkpoint and stops; waits up to `seconds` for its
/// end (0: orders it alone) and prints the command that goes on with it. Also for one that is stopping, or has stopped,
/// already. Throws Error when the run failed, or has not ended in time.
void drain(const std::string& run, double seconds);

}  // namespace ganymede::cli
