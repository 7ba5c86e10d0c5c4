#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/support/training_run.h"

namespace ganymede::test {

/// Of a short run whose optimizer is to be swapped.
std::vector<std::string> swap_settings(int ranks, int steps);

/// `ganymede ctl RUN swap-optimizer ARGUMENTS…`.
TrainingRun::Answer swap(const TrainingRun& run, std::vector<std::string> arguments);

/// The process of the standby optimizer server of a rank of a run directory; 0: there is none.
int standby_of(const std::string& folder, int rank, int epoch = 1);

/// Kills the standby server of a rank, and the one that comes in its place: then the rank cannot follow. `output`: of
/// the launcher that says so, which ends the wait for another one.
void kill_standbys(const std::string& folder, int rank, const std::function<std::string()>& output);

/// The first step that the optimizer of state epoch `epoch` updates, by the metrics; 0: none.
std::uint64_t first_step_of_epoch(const TrainingRun& run, int epoch);

/// Trains to step `begin`, goes on, and has the swap ordered before the step after it is voted on: so the swap begins
/// with that step, and all that it does follows from it. Returns while it is being warmed up.
void begin_swap_at(TrainingRun& run, int begin, const std::vector<std::string>& arguments);

}  // namespace ganymede::test
