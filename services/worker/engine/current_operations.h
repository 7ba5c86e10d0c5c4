#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>

#include "common/plan/plan.h"

namespace ganymede::worker {

/// What a worker says that it does, of the operations that its lanes are in: one that works before one that others have
/// to take part in, so that a rank which only waits for its peers can be told from the one that they wait for. Of
/// several that work the one that began last, of several that communicate the one that began first.
class CurrentOperations {
 public:
  using Show = std::function<void(const plan::Operation&)>;
  /// `show` is called, by one thread at a time, when the answer changes. Operations that are named must outlive this.
  explicit CurrentOperations(Show show) : show_(std::move(show)) {}

  /// Of a lane that is in one operation at a time. Thread-safe.
  void started(const plan::Operation& operation);
  void ended(const plan::Operation& operation);

 private:
  const plan::Operation* choose() const;
  void show();

  struct Lane {
    const plan::Operation* operation = nullptr;
    std::uint64_t began = 0;
  };
  Show show_;
  std::mutex mutex_;
  std::array<Lane, plan::lane_count> lanes_{};
  std::uint64_t begun_ = 0;
  const plan::Operation* shown_ = nullptr;
};

}  // namespace ganymede::worker
