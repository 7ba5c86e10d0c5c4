#include "common/service/planned_times.h"

#include <time.h>

#include <algorithm>

namespace ganymede::service {
namespace {

constexpr double fading = 0.9;  // of a longest time, each time the operation is done

double seconds_of(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

}  // namespace

void PlannedTimes::took(std::uint64_t operation, const PlannedTime& time) {
  std::lock_guard lock(mutex_);
  PlannedTime& known = known_[operation];
  known.seconds = std::max(time.seconds, fading * known.seconds);
  known.cpu_seconds = std::max(time.cpu_seconds, fading * known.cpu_seconds);
}

PlannedTime PlannedTimes::of(std::uint64_t operation) const {
  std::lock_guard lock(mutex_);
  auto found = known_.find(operation);
  return found == known_.end() ? PlannedTime{} : found->second;
}

Stopwatch::Stopwatch() : began_(seconds_of(CLOCK_MONOTONIC)), cpu_began_(seconds_of(CLOCK_PROCESS_CPUTIME_ID)) {}

void Stopwatch::pause() {
  if (pauses_++ == 0) paused_since_ = seconds_of(CLOCK_MONOTONIC);
}

void Stopwatch::go_on() {
  if (--pauses_ == 0) away_ += seconds_of(CLOCK_MONOTONIC) - paused_since_;
}

PlannedTime Stopwatch::taken() const {
  return {seconds_of(CLOCK_MONOTONIC) - began_ - away_, seconds_of(CLOCK_PROCESS_CPUTIME_ID) - cpu_began_};
}

void RepeatedWork::begin(std::uint64_t operation, std::uint64_t bucket, const char* detail) {
  end();
  context_.at(operation, bucket, detail);
  at_ = operation << 32 | bucket;
  context_.plan(times_.of(*at_));
  watch_.emplace();
}

void RepeatedWork::end() {
  if (at_ && !disturbed_) times_.took(*at_, watch_->taken());
  at_.reset();
  disturbed_ = false;
}

void RepeatedWork::disturb(std::uint64_t operation, std::uint64_t bucket, const char* detail) {
  if (!disturbed_.exchange(true)) context_.at(operation, bucket, detail);
}

}  // namespace ganymede::service
