#pragma once

#include <map>
#include <string>
#include <vector>

#include "launcher/coordinator/restart_book.h"

namespace ganymede::launcher {

/// How events call the launcher of the node itself.
constexpr const char* launcher_process = "launcher";

/// Restarts of this node's processes, as far as the node itself sees them: cause, detection, replacement. All times are
/// seconds of the monotonic clock. Not thread-safe.
class RestartNotes {
 public:
  /// A process has ended at `now` and will be replaced. `detect`: how long it had stood still before it was ended.
  void ended(const std::string& process, bool worker, const std::string& cause, double detect, double now);
  /// Its replacement is there.
  void back(const std::string& process, double now);
  /// The newest, oldest first, at most RestartBook::kept.
  const std::vector<coordinator::RestartEvent>& events() const { return events_; }

 private:
  std::vector<coordinator::RestartEvent> events_;
  struct Away {
    std::uint64_t number = 0;
    double since = 0;
  };
  std::map<std::string, Away> away_;  // processes whose replacement is not there yet
};

}  // namespace ganymede::launcher
