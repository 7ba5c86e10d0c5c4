#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "common/plan/executor.h"

namespace ganymede::plan {

/// Runs a plan in simulated time: no threads, no waits. Each operation starts when what it waits for is complete and
/// its lane is free, and takes as long as its duration says. The functions of the table are called one by one in the
/// order in which the operations end, in the thread of the caller: so a real step computes the same in it.
class SimulatedExecutor : public Executor {
 public:
  /// By operation of the plan that is run: `durations_ms`, and `earliest_ms`, before which it does not start whatever
  /// it waits for. One that is missing takes no time, or may start at once.
  explicit SimulatedExecutor(std::vector<double> durations_ms, std::vector<double> earliest_ms = {})
      : durations_ms_(std::move(durations_ms)), earliest_ms_(std::move(earliest_ms)) {}

  /// The report is the same for the same plan and durations. `spans` are simulated; a lane's `wait_ms` is the time in
  /// which it does nothing before its last operation.
  ExecutorReport run(const StepPlan& plan, const OperationTable& table) override;
  void cancel(const std::string& why) override;

 private:
  std::vector<double> durations_ms_, earliest_ms_;
  std::mutex mutex_;  // of what follows
  bool cancelled_ = false, failed_ = false;
  std::string why_;
  std::exception_ptr fault_;
};

/// The spans of a plan's operations, for durations and earliest starts as SimulatedExecutor takes them; no function is
/// called.
std::vector<Span> timeline(const StepPlan& plan, const std::vector<double>& durations_ms,
                           const std::vector<double>& earliest_ms = {});

}  // namespace ganymede::plan
