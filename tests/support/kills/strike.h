#pragma once

#include <string>
#include <vector>

#include "tests/support/kills/targets.h"
#include "tests/support/training_run.h"

namespace ganymede::test {

/// How a target was hit.
struct Strike {
  bool hit = false;
  int pid = 0;
  int looks = 0;  // how often the process was stopped to look where it is, the last time included
};

/// Kills the service with SIGKILL while it is where `target` says, which is certain: it is stopped, looked at, and goes
/// on when it has gone too far. An operation that takes no longer than a look is hit in small steps. Gives up after
/// `seconds` (times `patience`).
Strike strike(const std::string& run, const WatchedCell& cell, const KillTarget& target, double seconds);

/// The targets, hit one after another on the run that goes on: of each, rank by rank in turn. After each one, two more
/// steps are committed. Returns the names of those that were never hit; prints how each one was. Throws Error when the
/// run does not go on.
std::vector<std::string> strike_all(const TrainingRun& run, const std::vector<WatchedCell>& cells,
                                    const std::vector<KillTarget>& targets);

}  // namespace ganymede::test
