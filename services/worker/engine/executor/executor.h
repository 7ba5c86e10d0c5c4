#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <string>

#include "common/plan/executor.h"

/// The CPU executor: one thread a lane runs the operations of a plan in list order, each when what it waits for is
/// complete.
namespace ganymede::worker {

using plan::Cancelled;
using plan::describe;
using plan::ExecutorReport;
using plan::LaneUse;
using plan::OperationFailed;
using plan::OperationFunction;
using plan::OperationTable;

struct ExecutorHooks {
  std::function<void(plan::Lane)> lane_started{};                   // once in each lane's thread
  std::function<void(const plan::Operation&)> operation_started{};  // in the lane's thread; must be thread-safe
  std::function<void(const plan::Operation&)> operation_ended{};    // the same, unless the operation threw
  /// What the operation which just ended in this thread waited for the world outside: taken from its busy time and
  /// added to the lane's waits.
  std::function<plan::OutsideWait()> take_outside_wait{};
  /// Called once when an operation failed or `cancel` came: must make operations that wait return (abort the
  /// communicators). Thread-safe.
  std::function<void()> stop{};
  /// How long lanes may take to end after that; one that takes longer ends the process (a late lane would write into
  /// a step that is being recovered).
  std::chrono::nanoseconds grace = std::chrono::seconds(60);
  /// Operations run one after another, in list order, each in its lane's thread: so that the time of each can be
  /// measured without the others beside it. Results are the same.
  bool one_at_a_time = false;
};

class ThreadExecutor : public plan::Executor {
 public:
  explicit ThreadExecutor(ExecutorHooks hooks);
  /// Joins all lanes.
  ~ThreadExecutor() override;
  ThreadExecutor(const ThreadExecutor&) = delete;
  ThreadExecutor& operator=(const ThreadExecutor&) = delete;

  ExecutorReport run(const plan::StepPlan& plan, const OperationTable& table) override;
  void cancel(const std::string& why) override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ganymede::worker
