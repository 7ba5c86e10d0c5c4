#pragma once

#include <chrono>

namespace ganymede {

using Clock = std::chrono::steady_clock;

/// Seconds of the monotonic clock, the same for all processes of the machine.
inline double now_seconds() { return std::chrono::duration<double>(Clock::now().time_since_epoch()).count(); }

inline double seconds_since(Clock::time_point began) {
  return std::chrono::duration<double>(Clock::now() - began).count();
}

/// A point in time after which a wait gives up. Every wait of the project takes one.
class Deadline {
 public:
  static Deadline after(std::chrono::nanoseconds span) { return Deadline(Clock::now() + span); }
  static Deadline after_seconds(double seconds) {
    return after(std::chrono::nanoseconds(static_cast<long long>(seconds * 1e9)));
  }
  bool passed() const { return Clock::now() >= at_; }
  /// Time left, never negative.
  std::chrono::nanoseconds left() const {
    auto now = Clock::now();
    return now >= at_ ? std::chrono::nanoseconds(0) : std::chrono::nanoseconds(at_ - now);
  }

 private:
  explicit Deadline(Clock::time_point at) : at_(at) {}
  Clock::time_point at_;
};

}  // namespace ganymede
