#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "common/os/process_look.h"
#include "common/service/service.h"

namespace ganymede::launcher {

/// What a service says of its operation, in the words that it shares with its launcher.
struct OperationSigns {
  std::uint64_t progress = 0;
  service::PlannedTime planned = {};  // 0: not known, or it waits for others
};

struct Stall {
  double since = 0;  // seconds
  std::string why;   // "it was stopped by a signal for 5.1 s"
};

/// Finds out that a process is stopped, or stands still in an operation of its own, without blaming one that gets no
/// processor, waits for a disk, is in a debugger, or is in an operation that it has not done before. What it computes
/// is judged by the processor time that it got. All times are seconds of one monotonic clock. Not thread-safe.
class StallWatch {
 public:
  using Threads = std::function<std::optional<os::ThreadStates>()>;

  /// Called several times a second. `stall_seconds`: launch.stall_seconds. `operation` is absent while it is not known,
  /// `threads` is asked only when the process has made no progress for some time. Nothing: it does not stand still.
  std::optional<Stall> look(double now, double stall_seconds, os::ProcessState state,
                            const std::optional<OperationSigns>& operation, const Threads& threads);
  /// The watcher itself was away for `gap` seconds: nobody is blamed for that time.
  void forgive(double gap);

 private:
  /// Looks at the threads of one that makes no progress.
  struct Looks {
    double began = 0, cpu_began = 0;
    int count = 0, busy = 0;  // busy: some thread ran, or waited for the kernel
  };
  void begin(double now, const std::optional<OperationSigns>& operation);
  std::optional<Stall> judge(double now, double stall_seconds, const os::ThreadStates& threads);

  std::optional<double> stopped_since_;
  std::optional<OperationSigns> operation_;
  double since_ = 0;  // that progress was seen
  std::optional<Looks> looks_;
};

}  // namespace ganymede::launcher
