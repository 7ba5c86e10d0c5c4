#include "launcher/supervisor/restart_policy.h"

#include <algorithm>
#include <cmath>

namespace ganymede::launcher {

std::optional<double> RestartPolicy::died(double now) {
  while (!deaths_.empty() && now - deaths_.front() > window_) deaths_.pop_front();
  int earlier = static_cast<int>(deaths_.size());
  if (earlier >= budget_) return std::nullopt;
  deaths_.push_back(now);
  if (earlier == 0) return 0;
  return std::min(longest_delay, 0.1 * std::exp2(earlier - 1));
}

}  // namespace ganymede::launcher
