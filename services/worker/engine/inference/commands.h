#pragma once

namespace ganymede::worker {

/// `ganymede-worker generate …` and `ganymede-worker eval …`: a checkpoint's model without a job. Returns the exit
/// code.
int inference_program(int argc, char** argv);

}  // namespace ganymede::worker
