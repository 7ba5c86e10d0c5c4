#include "launcher/supervisor/stall.h"

#include <algorithm>

#include "common/base/error.h"
#include "common/base/text.h"

namespace ganymede::launcher {
namespace {

constexpr double times_planned = 10;  // what an operation may take
constexpr int least_looks = 8;        // few say little, on a machine where this process is late as well
constexpr double most_busy = 0.25;    // of the looks at one that sleeps
constexpr double most_used = 0.05;    // of a processor by one that sleeps

}  // namespace

void StallWatch::forgive(double gap) {
  if (stopped_since_) *stopped_since_ += gap;
  since_ += gap;
  looks_.reset();
}

void StallWatch::begin(double now, const std::optional<OperationSigns>& operation) {
  operation_ = operation;
  since_ = now;
  looks_.reset();
}

std::optional<Stall> StallWatch::look(double now, double stall_seconds, os::ProcessState state,
                                      const std::optional<OperationSigns>& operation, const Threads& threads) {
  if (state == os::ProcessState::stopped) {
    begin(now, {});
    if (!stopped_since_) stopped_since_ = now;
    double seconds = now - *stopped_since_;
    if (seconds < stall_seconds) return std::nullopt;
    return Stall{*stopped_since_, fmt::format("it was stopped by a signal for {}", human_seconds(seconds))};
  }
  stopped_since_.reset();
  bool judged = state == os::ProcessState::lives && operation && operation->planned.seconds > 0;
  if (!judged || !operation_ || operation->progress != operation_->progress) {
    begin(now, judged ? operation : std::nullopt);
    return std::nullopt;
  }
  operation_ = operation;
  double limit = std::max(stall_seconds, times_planned * operation->planned.seconds);
  if (now - since_ < limit / 2) return std::nullopt;
  auto states = threads();
  return states ? judge(now, stall_seconds, *states) : std::nullopt;
}

std::optional<Stall> StallWatch::judge(double now, double stall_seconds, const os::ThreadStates& threads) {
  if (!looks_) looks_ = Looks{.began = now, .cpu_began = threads.cpu_seconds};
  ++looks_->count;
  looks_->busy += threads.running + threads.blocked > 0 ? 1 : 0;
  const service::PlannedTime& planned = operation_->planned;
  double limit = std::max(stall_seconds, times_planned * planned.seconds);
  double age = now - since_, used = threads.cpu_seconds - looks_->cpu_began;
  auto stall = [&](const char* how) {
    return Stall{since_, fmt::format("it made no progress for {} and {} in what takes {}", human_seconds(age), how,
                                     human_seconds(planned.seconds))};
  };
  bool sleeps = looks_->busy <= most_busy * looks_->count && used <= most_used * (now - looks_->began);
  if (sleeps && age > limit && looks_->count >= least_looks) return stall("used no processor");
  // The other half of its time was not looked at.
  bool spins = used > std::max(stall_seconds, times_planned / 2 * planned.cpu_seconds);
  if (spins && age > std::max(2 * stall_seconds, limit)) return stall("computed all the time");
  return std::nullopt;
}

}  // namespace ganymede::launcher
