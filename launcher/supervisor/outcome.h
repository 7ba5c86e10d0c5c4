#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/error.h"

namespace ganymede::launcher {

/// How a run ended.
struct Outcome {
  ExitCode code = ExitCode::done;
  std::string text;  // of a failure: a sentence, then the culprit's last log lines; else empty
  std::optional<std::uint64_t> checkpoint = {};  // step of the newest one
  bool again = false;                            // not the end: the world forms again from the last checkpoint
};

/// The exit code that another process names; what is none of ours is a failure.
inline ExitCode exit_code_of(int number) {
  for (ExitCode code : {ExitCode::done, ExitCode::usage, ExitCode::can_go_on})
    if (number == static_cast<int>(code)) return code;
  return ExitCode::failed;
}

}  // namespace ganymede::launcher
