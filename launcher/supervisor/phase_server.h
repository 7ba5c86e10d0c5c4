#pragma once

#include <mutex>
#include <string>

#include "common/msg/server.h"

namespace ganymede::launcher {

/// Answers what a person asks of a launcher while it has no services: before they start, and after they have ended. It
/// says what the launcher does. A stop has the effect of SIGTERM, which every long work of the launcher looks for. What
/// needs services is refused: in the first phase of "recovering", which a launcher that takes over a run leaves in a
/// moment, with ExitCode::can_go_on.
class PhaseServer {
 public:
  /// `run`: the run directory, which is the current folder; `state`: as `ctl status` shows it. Throws Error when the
  /// launcher's endpoint is taken.
  PhaseServer(const std::string& run, const std::string& state, const std::string& phase);
  PhaseServer(const PhaseServer&) = delete;
  PhaseServer& operator=(const PhaseServer&) = delete;

  /// What the launcher does from now on, in words: "packing the dataset". Thread-safe.
  void enter(const std::string& phase);

 private:
  msg::Message answer(const msg::Message& request);
  msg::Message status(const msg::Message& request, const std::string& phase) const;

  std::string run_, state_;
  std::mutex mutex_;
  std::string phase_;
  bool first_;
  msg::Server server_;  // last: its thread uses the others
};

}  // namespace ganymede::launcher
