#pragma once

#include <cstdint>
#include <vector>

#include "common/plan/plan.h"

namespace ganymede::plan {

/// Counts the bytes of a plan's pool that are alive, from the operations as they complete. A buffer is taken when its
/// operation's turn in the list has come and every free before it has happened (the plan's rule), and given back
/// when the operation that frees it is complete. Not thread-safe.
class PoolMeter {
 public:
  /// `plan` must outlive the meter.
  explicit PoolMeter(const StepPlan& plan);
  void complete(int operation);
  std::int64_t alive_bytes() const { return alive_; }
  std::int64_t peak_bytes() const { return peak_; }

 private:
  void take_what_has_its_turn();

  const StepPlan& plan_;
  std::vector<bool> complete_;
  std::size_t turn_ = 0;         // operations before it have taken their buffers
  std::size_t freed_up_to_ = 0;  // operations before it that free something are complete
  std::int64_t alive_ = 0, peak_ = 0;
};

}  // namespace ganymede::plan
