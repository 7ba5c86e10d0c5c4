#pragma once

#include <string>

namespace ganymede::os {

/// Makes this process ready for `write_stacks`. Called once, before any thread: what handles the signal must not load a
/// library itself.
void prepare_stacks();

/// Writes the stacks of all threads of this process into a file, which is replaced: per thread its name and id, and a
/// frame a line. Each thread is interrupted by a signal for as long as that takes; waits of libraries may end early
/// with EINTR. One that takes no signals (ZeroMQ's) or does not answer within 0.2 s has a line that says so. Calls from
/// several threads take turns. Throws Error when the file cannot be written.
void write_stacks(const std::string& path);

}  // namespace ganymede::os
