#pragma once

#include <string>
#include <vector>

#include "common/plan/plan.h"
#include "common/plan/traffic.h"

/// The growing plan: operations in order and their buffers. What is alive at its end is known to who lists the
/// operations: parameters.h, gradients.h and passes.h.
namespace ganymede::plan {

class Builder {
 public:
  Builder(const config::Config& config, const placement::Placement& placement);

  /// Adds an operation at the end; returns its index.
  int add(Operation operation);
  int next() const { return static_cast<int>(plan_.operations.size()); }  // index of the operation that is added next
  int new_buffer(BufferKind kind, const std::string& name, std::int64_t bytes, int bucket, int layer, int row,
                 Travel travel = Travel::none);

  const std::vector<int>& buckets_of(int layer) const;  // -1 embedding, `layers` head

  /// The next release gives the buffer back: for what a transfer uses that runs beside computation.
  void give_back_later(int buffer) { spent_.push_back(buffer); }
  /// A release of a layer's bucket, or of none: gives back `buffers`, and what transfers that were listed before it
  /// have used up. No operation when there is nothing to give back.
  void release(int layer, int bucket = -1, std::vector<int> buffers = {});

  /// Dependencies, offsets, sizes; the builder is used up.
  StepPlan finish();

  const config::Config& config;
  const placement::Placement& placement;
  const int layers;
  const TrafficChoices choices;

 private:
  StepPlan plan_;
  /// Buffers of transfers that run beside computation. Whatever stands behind a free in the list waits for it, so these
  /// are not freed by the transfer itself, but by the next release, behind the computation that runs beside it.
  std::vector<int> spent_;
  std::vector<std::vector<int>> buckets_;  // by layer + 1
};

/// Whether an operation of that part of a layer works on the bucket.
bool works_on(Part part, const placement::Bucket& bucket);

/// Fills `after` from what operations share (buffers) and from the order of frees, on top of what is there.
void complete_dependencies(StepPlan& plan);

/// Assigns offsets by lifetime (largest first, lowest place that is free for all of its life) and the sizes. With
/// `reductions_apart` gradients and what reductions take lie in a part of the pool of their own, behind the rest.
void lay_out_buffers(StepPlan& plan, bool reductions_apart);

/// [first, last] operation of each buffer's life in list order; {-1, -1} for one that is never taken.
struct Lifetime {
  int first = -1, last = -1;
};
std::vector<Lifetime> lifetimes(const StepPlan& plan);

/// Most bytes of the pool alive at once, by lifetimes.
std::int64_t peak(const StepPlan& plan);

/// For each operation, per lane, the last operation that is complete when it starts; -1 for none.
std::vector<std::vector<int>> known_complete(const StepPlan& plan);

}  // namespace ganymede::plan
