#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

#include "common/plan/plan.h"

/// The CPU executor: one thread a lane runs the operations of a plan in list order, each when what it waits for is
/// complete. It knows nothing of tensors: what an operation does is a function of the caller's table.
namespace ganymede::worker {

using OperationFunction = std::function<void(const plan::Operation&, int index)>;

/// What to call for each kind. A kind without a function does nothing (a release is bookkeeping only).
struct OperationTable {
  std::array<OperationFunction, static_cast<std::size_t>(plan::OperationKind::wait_update) + 1> functions;
  OperationFunction& operator[](plan::OperationKind kind) { return functions[static_cast<std::size_t>(kind)]; }
  const OperationFunction& operator[](plan::OperationKind kind) const {
    return functions[static_cast<std::size_t>(kind)];
  }
};

struct LaneUse {
  double busy_ms = 0;  // inside operations
  double wait_ms = 0;  // for operations of other lanes
};

struct ExecutorReport {
  std::array<LaneUse, plan::lane_count> lanes;
  std::int64_t peak_bytes = 0;  // measured by PoolMeter
};

/// An operation threw. The text names it; `cause` is what it threw.
class OperationFailed : public std::runtime_error {
 public:
  OperationFailed(const std::string& text, std::exception_ptr cause) : std::runtime_error(text), cause_(cause) {}
  const std::exception_ptr& cause() const { return cause_; }

 private:
  std::exception_ptr cause_;
};

/// `cancel` was called.
class Cancelled : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct ExecutorHooks {
  std::function<void(plan::Lane)> lane_started{};                   // once in each lane's thread
  std::function<void(const plan::Operation&)> operation_started{};  // in the lane's thread; must be thread-safe
  /// Milliseconds that the operation which just ended in this thread waited for the world outside: taken from its busy
  /// time and added to the lane's waits.
  std::function<double()> take_outside_wait{};
  /// Called once when an operation failed or `cancel` came: must make operations that wait return (abort the
  /// communicators). Thread-safe.
  std::function<void()> stop{};
  /// How long lanes may take to end after that; one that takes longer ends the process (a late lane would write into
  /// a step that is being recovered).
  std::chrono::nanoseconds grace = std::chrono::seconds(60);
};

class Executor {
 public:
  explicit Executor(ExecutorHooks hooks);
  /// Joins all lanes.
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  /// Runs the plan; afterwards no lane is inside an operation, whether it returns or throws.
  /// Throws OperationFailed with the first operation that threw, Cancelled after `cancel`.
  ExecutorReport run(const plan::StepPlan& plan, const OperationTable& table);

  /// Ends the run that is under way, and every later one. From any thread.
  void cancel(const std::string& why);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// "forward layer 3 row 1", for messages.
std::string describe(const plan::Operation& operation);

}  // namespace ganymede::worker
