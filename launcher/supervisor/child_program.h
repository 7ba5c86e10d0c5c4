#pragma once

#include <string>

#include "common/base/deadline.h"
#include "common/base/error.h"
#include "common/os/process.h"
#include "launcher/supervisor/signals.h"

namespace ganymede::launcher {

/// Why another program ended, when that program has told the person itself: logged, but not shown again.
class ToldError : public Error {
  using Error::Error;
};

/// Runs another program to its end and returns how it ended. A signal to this process ends it early: the program gets
/// SIGTERM, after five seconds SIGKILL, and Error(can_go_on) is thrown (ToldError when its output is shown and it ended
/// with that code). At the deadline the same, with Error(failed).
os::Ending run_child(const os::Command& command, Signals& signals, Deadline deadline);

/// The same, and what it printed (stdout and stderr), collected through the file `output` which is removed.
struct ChildResult {
  os::Ending ending;
  std::string output;
};
ChildResult run_child_captured(os::Command command, const std::string& output, Signals& signals, Deadline deadline);

}  // namespace ganymede::launcher
