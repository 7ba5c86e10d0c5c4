#pragma once

#include <deque>
#include <optional>

namespace ganymede::launcher {

/// When a dead service is started again: at once after its first death, then after 0.1 s, 0.2 s, 0.4 s …, and not
/// at all when it died more than `budget` times within `window_seconds`. Not thread-safe.
class RestartPolicy {
 public:
  RestartPolicy(int budget, double window_seconds) : budget_(budget), window_(window_seconds) {}

  /// The service died at `now` (seconds of any monotonic clock). Returns the seconds until its replacement may start;
  /// nothing when the budget is used up.
  std::optional<double> died(double now);

  static constexpr double longest_delay = 10;  // seconds

 private:
  int budget_;
  double window_;
  std::deque<double> deaths_;  // within the window, oldest first
};

}  // namespace ganymede::launcher
