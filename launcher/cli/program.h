#pragma once

namespace ganymede::cli {

/// `main` of ganymede. Returns the exit code (0 done, 1 failed, 2 usage); a command that another program carries out
/// replaces this process.
int program(int argc, char** argv);

}  // namespace ganymede::cli
