#pragma once

#include <cstdint>

#include "common/config/config.h"

namespace ganymede::worker {

/// Whether the held-out rows are read after this step: every `validation.every_steps`, and after the last step of the
/// run. Not after the step that a stop ends: whoever takes the machine away waits, and the run that goes on has the
/// same metrics as one that was never stopped.
bool validation_due(const config::Config& config, std::uint64_t step);

}  // namespace ganymede::worker
