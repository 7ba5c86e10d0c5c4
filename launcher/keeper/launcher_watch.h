#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "common/base/deadline.h"
#include "common/os/process.h"
#include "launcher/keeper/segment_server.h"
#include "launcher/keeper/sign_of_life.h"

namespace ganymede::keeper {

/// Keeps one launcher running: forwards SIGINT, SIGTERM, SIGUSR1, SIGUSR2 (and a lost terminal as SIGTERM), starts it
/// again when it crashed, was stopped or is silent (sign_of_life.h), and lets no process of a launcher outlive it.
/// Signals that mean a stop are noted (stop_order.h), so that the next launcher knows of them too.
class LauncherWatch {
 public:
  /// Makes this process the reaper of all its descendants. `server` is served meanwhile. Call before any thread.
  LauncherWatch(std::vector<std::string> command, SegmentServer& server);
  /// The exit code of the launcher that ended for good. Throws Error when it crashes again and again, or when a
  /// process that it left behind cannot be ended.
  int run();

 private:
  os::Ending tend(const os::Child& launcher);
  void forward_signals(const os::Child& launcher);
  void end_mute(const os::Child& launcher);
  void end_lifeless(const os::Child& launcher);
  std::optional<int> final_code(const os::Ending& ending) const;
  void back_off(const os::Ending& ending);

  os::Command command_;
  SegmentServer& server_;
  os::Fd signals_;
  LauncherLife life_;
  std::optional<LauncherLife::Fault> fault_;  // why this launcher is killed
  int interrupts_ = 0;                        // how often SIGINT was forwarded
  int stop_signal_ = 0;                       // the last signal that means a stop and was forwarded
  std::optional<Deadline> must_end_;          // once the run was told to stop now
  std::deque<Clock::time_point> crashes_;
};

}  // namespace ganymede::keeper
