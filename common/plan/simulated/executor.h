#pragma once

#include <mutex>
#include <string>

#include "common/plan/executor.h"
#include "common/plan/simulated/timeline.h"

namespace ganymede::plan {

/// Runs a plan in simulated time: no threads, no waits. Each operation starts when what it waits for is complete and
/// its lane is free, and takes as long as its costs say. The functions of the table are called one by one in the
/// order in which the operations end, in the thread of the caller: so a real step computes the same in it.
class SimulatedExecutor : public Executor {
 public:
  explicit SimulatedExecutor(OperationCosts costs) : costs_(std::move(costs)) {}

  /// The report is the same for the same plan and costs. `spans` are simulated; a lane's `wait_ms` is the time in
  /// which it does nothing before its last operation.
  ExecutorReport run(const StepPlan& plan, const OperationTable& table) override;
  void cancel(const std::string& why) override;

 private:
  OperationCosts costs_;
  std::mutex mutex_;  // of what follows
  bool cancelled_ = false, failed_ = false;
  std::string why_;
  std::exception_ptr fault_;
};

}  // namespace ganymede::plan
