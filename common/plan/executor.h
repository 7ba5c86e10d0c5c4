#pragma once

#include <array>
#include <cstdint>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "common/plan/plan.h"

/// What runs a step plan: one interface for threads (services/worker/engine/executor) and for simulated time
/// (common/plan/simulated). An executor knows nothing of tensors: what an operation does is a function of the caller's
/// table.
namespace ganymede::plan {

using OperationFunction = std::function<void(const Operation&, int index)>;

/// What to call for each kind. A kind without a function does nothing (a release is bookkeeping only).
struct OperationTable {
  std::array<OperationFunction, operation_kinds> functions;
  OperationFunction& operator[](OperationKind kind) { return functions[static_cast<std::size_t>(kind)]; }
  const OperationFunction& operator[](OperationKind kind) const { return functions[static_cast<std::size_t>(kind)]; }
};

struct LaneUse {
  double busy_ms = 0;  // inside operations
  double wait_ms = 0;  // for operations of other lanes, and for the world outside
};

/// What an operation waited for the world outside, in milliseconds.
struct OutsideWait {
  double words_ms = 0;        // batches and updates of the same cell
  double collectives_ms = 0;  // inside collectives: the transfer itself, and peers that come late
};

/// When an operation ran, in milliseconds since the run began: from when what it waits for is complete and its lane is
/// free, to its end.
struct Span {
  double start_ms = 0, end_ms = 0;
  OutsideWait outside{};  // of it
};

struct ExecutorReport {
  std::array<LaneUse, lane_count> lanes{};
  std::int64_t peak_bytes = 0;  // of the pool, measured by PoolMeter
  std::vector<Span> spans{};    // by operation
};

/// An operation threw. The text names it; `cause` is what it threw.
class OperationFailed : public std::runtime_error {
 public:
  OperationFailed(const std::string& text, std::exception_ptr cause)
      : std::runtime_error(text), cause_(std::move(cause)) {}
  const std::exception_ptr& cause() const { return cause_; }

 private:
  std::exception_ptr cause_;
};

/// `cancel` was called.
class Cancelled : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Executor {
 public:
  virtual ~Executor() = default;

  /// Runs the plan; afterwards nothing is inside an operation, whether it returns or throws. An operation starts when
  /// all that it waits for are complete; those of one lane run in list order. One run at a time, from one thread.
  /// Throws OperationFailed with the first operation that threw, Cancelled after `cancel`; so does every later run.
  virtual ExecutorReport run(const StepPlan& plan, const OperationTable& table) = 0;

  /// Ends the run that is under way, and every later one. From any thread.
  virtual void cancel(const std::string& why) = 0;
};

/// "forward layer 3 row 1", for messages.
std::string describe(const Operation& operation);

}  // namespace ganymede::plan
