#pragma once

#include <string>
#include <vector>

namespace ganymede::test {

/// Settings of a run of `steps` that is looked at for its losses alone: the schedule ends with it, and nothing is
/// validated or saved on the way. `more` stand in front.
inline std::vector<std::string> short_run(int ranks, int steps, std::vector<std::string> more) {
  more.insert(more.end(), {"parallel.ranks=" + std::to_string(ranks), "run.steps=" + std::to_string(steps),
                           "optimizer.decay_steps=" + std::to_string(steps), "checkpoint.every_steps=0",
                           "compute.threads=1", "validation.every_steps=0"});
  return more;
}

}  // namespace ganymede::test
