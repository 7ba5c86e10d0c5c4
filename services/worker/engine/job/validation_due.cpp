#include "services/worker/engine/job/validation_due.h"

namespace ganymede::worker {

bool validation_due(const config::Config& config, std::uint64_t step) {
  auto every = static_cast<std::uint64_t>(config.validation.every_steps);
  return every > 0 && (step % every == 0 || step >= static_cast<std::uint64_t>(config.run.steps));
}

}  // namespace ganymede::worker
