#pragma once

namespace ganymede::checkpoint {

/// The program: `list`, `verify` and `dump` read checkpoints; with `--run DIR --rank R` it is the service of one rank.
/// Returns the exit code.
int program(int argc, char** argv);

}  // namespace ganymede::checkpoint
