#pragma once

#include "services/worker/engine/executor/executor.h"
#include "services/worker/engine/workbench.h"

namespace ganymede::worker {

/// gather, reduce, offload and prefetch: what moves parameters, gradients and saved inputs.
class TransferOperations {
 public:
  TransferOperations(Workbench& bench, const plan::StepPlan& plan) : bench_(bench), plan_(plan) {}
  void install(OperationTable& table);

 private:
  /// Waits for the working copy of the bucket, then brings it whole into its buffer.
  void gather(const plan::Operation& operation);
  /// Sum over the bucket's ranks of this rank's shard, in rank order, into the segment `gradients`.
  void reduce(const plan::Operation& operation);
  void copy_to_arena(const plan::Operation& operation);
  void copy_from_arena(const plan::Operation& operation);
  std::byte* place(int buffer) const;

  Workbench& bench_;
  const plan::StepPlan& plan_;
};

/// sum[i] = parts[0][i] + parts[1][i] + …, in this order, for parts of sum.size() elements one after another.
void sum_in_order(std::span<const float> parts, std::span<float> sum);

}  // namespace ganymede::worker
