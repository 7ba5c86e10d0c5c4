#pragma once

#include <optional>
#include <string>
#include <utility>

#include "common/os/process.h"

namespace ganymede::keeper {

/// What the keeper tells a launcher, in its environment, of the one whose place it takes.
struct EndedLauncher {
  double ended = 0;  // seconds of the monotonic clock
  std::string cause;
};

/// The environment's variable that says so, with its value.
std::pair<std::string, std::string> tell_of(const os::Ending& ending, double now);

/// Nothing for the first launcher of a keeper's life.
std::optional<EndedLauncher> ended_launcher();

}  // namespace ganymede::keeper
