#pragma once

namespace ganymede::launcher {

/// `main` of ganymede-launcher: makes the run directory ready, runs the services to the end of the run, prints the last
/// lines. Returns the exit code.
int program(int argc, char** argv);

}  // namespace ganymede::launcher
