#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>

#include "common/plan/plan.h"
#include "common/service/planned_times.h"

namespace ganymede::worker {

/// What a worker says that it does, of the operations that its lanes are in: one that works before one that others have
/// to take part in, so that a rank which only waits for its peers can be told from the one that they wait for. Of
/// several that work the one that began last, of several that communicate the one that began first.
class CurrentOperations {
 public:
  using Show = std::function<void(const plan::Operation&)>;
  using Plan = std::function<void(const service::PlannedTime&)>;
  /// `show` is called, by one thread at a time, when the answer changes, and then `plan` with what the operation takes
  /// as far as it was done before; with nothing when it waits for others, or when there is none any more. Operations
  /// that are named must outlive this.
  explicit CurrentOperations(
      Show show, Plan plan = [](const service::PlannedTime&) {})
      : show_(std::move(show)), plan_(std::move(plan)) {}

  /// Of a lane that is in one operation at a time, in the lane's thread. Thread-safe.
  void started(const plan::Operation& operation);
  void ended(const plan::Operation& operation);
  /// The operation of the calling thread begins, or has ended, to wait for somebody else. Thread-safe; of a thread that
  /// is no lane nothing happens.
  void waits(bool begins);
  /// The plan is given up: nobody is blamed for what still runs. Thread-safe.
  void give_up();

 private:
  struct Lane {
    const plan::Operation* operation = nullptr;
    std::uint64_t began = 0;
    std::optional<service::Stopwatch> watch = {};
    bool works() const { return !plan::meets_others(operation->kind) && !watch->paused(); }
  };
  const Lane* choose() const;
  void show();

  Show show_;
  Plan plan_;
  service::PlannedTimes times_;
  std::mutex mutex_;
  std::array<Lane, plan::lane_count> lanes_{};
  std::uint64_t begun_ = 0;
  const plan::Operation* shown_ = nullptr;
  bool shown_works_ = false, given_up_ = false;
};

}  // namespace ganymede::worker
