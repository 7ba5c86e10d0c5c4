#pragma once

namespace ganymede::checkpoint {

/// `list`, `verify` and `dump`: what a person or a script reads checkpoints with. Returns the exit code; an error is
/// one line on stderr.
int commands(int argc, char** argv);

}  // namespace ganymede::checkpoint
