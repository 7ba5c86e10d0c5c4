#pragma once

#include <optional>
#include <string>
#include <utility>

namespace ganymede::keeper {

/// What the keeper tells a launcher, in its environment, of the one whose place it takes.
struct EndedLauncher {
  double ended = 0;   // seconds of the monotonic clock
  double detect = 0;  // seconds that it had stood still until it was ended
  std::string cause;
};

/// The environment's variable that says so, with its value.
std::pair<std::string, std::string> tell_of(const EndedLauncher& launcher);

/// Nothing for the first launcher of a keeper's life.
std::optional<EndedLauncher> ended_launcher();

}  // namespace ganymede::keeper
