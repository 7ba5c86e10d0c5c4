#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <optional>

#include "common/service/service.h"

namespace ganymede::service {

/// What operations that come again and again have taken in this process: what they are planned to take. Thread-safe.
class PlannedTimes {
 public:
  /// Of an operation that was done once more. The longest time counts, but it fades: one hiccup does not last.
  void took(std::uint64_t operation, const PlannedTime& time);
  /// 0: it was not done yet.
  PlannedTime of(std::uint64_t operation) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::uint64_t, PlannedTime> known_;
};

/// Clock and processor time of this process since it was made. The clock stands while somebody outside is waited for.
class Stopwatch {
 public:
  Stopwatch();
  /// Of nested pauses the outermost counts.
  void pause();
  void go_on();
  bool paused() const { return pauses_ > 0; }
  PlannedTime taken() const;

 private:
  double began_, cpu_began_, paused_since_ = 0, away_ = 0;
  int pauses_ = 0;
};

/// Work of one thread that is done again and again, with its planned time. `disturb` may come from any thread.
class RepeatedWork {
 public:
  explicit RepeatedWork(Context& context) : context_(context) {}

  /// What came before ends. As Context::at.
  void begin(std::uint64_t operation, std::uint64_t bucket, const char* detail);
  void end();
  /// It waits for another process, as `detail` says: nobody is blamed, and how long it takes says nothing.
  void disturb(std::uint64_t operation, std::uint64_t bucket, const char* detail);

 private:
  Context& context_;
  PlannedTimes times_;
  std::optional<std::uint64_t> at_;
  std::optional<Stopwatch> watch_;
  std::atomic<bool> disturbed_{false};
};

}  // namespace ganymede::service
