#pragma once

namespace ganymede::worker {

/// `main` of ganymede-worker: the service (`--run DIR --rank R`), `generate` and `eval`. Returns the exit code.
int program(int argc, char** argv);

}  // namespace ganymede::worker
