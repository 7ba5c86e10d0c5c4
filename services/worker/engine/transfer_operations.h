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
  /// Waits for the working copy of the bucket, then brings it whole into its buffer, decoded where it is fp8.
  void gather(const plan::Operation& operation);
  /// A whole bucket from fp8 into the buffer of its parameters, in the compute type.
  void decode(const plan::Operation& operation, const wire::BucketForm& form, const std::byte* whole);
  /// Sum over the replicas, in their order, of this rank's shard in the segment `gradients`, in place: each sums its
  /// slice, then all have all, with the same bits.
  void replica_reduce(const plan::Operation& operation);
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
