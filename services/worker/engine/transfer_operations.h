#pragma once

#include "common/plan/traffic.h"
#include "services/worker/engine/executor/executor.h"
#include "services/worker/engine/workbench.h"

namespace ganymede::worker {

/// gather, reshard, reduce, offload and prefetch: what moves parameters, gradients and saved inputs.
class TransferOperations {
 public:
  TransferOperations(Workbench& bench, const plan::StepPlan& plan) : bench_(bench), plan_(plan) {}
  void install(OperationTable& table);

 private:
  /// Waits for the working copy of the bucket, then brings it whole into its buffer, decoded where it is fp8.
  void gather(const plan::Operation& operation);
  /// Keeps this rank's share of a gathered bucket, and brings the bucket together from the shares of the node.
  void reshard(const plan::Operation& operation);
  void regather(const plan::Operation& operation);
  plan::NodeShare share_of(const plan::Operation& operation) const;
  /// A whole bucket from fp8 into the buffer of its parameters, in the compute type.
  void decode(const plan::Operation& operation, const wire::BucketForm& form, const std::byte* whole);
  /// With the state sharded over replicas: brings this rank's range together from its slices into its place in `whole`,
  /// and returns it.
  std::span<std::byte> gather_range(const placement::Bucket& bucket, const wire::BucketForm& form,
                                    std::span<const std::byte> slice, std::byte* whole);
  std::span<float> range_gradients(const plan::Operation& operation);
  /// Sum over the replicas, in their order, of this rank's range, into the segment `gradients`: each sums its slice,
  /// then all have all, with the same bits; or each keeps the sum of the slice that it holds.
  void replica_reduce(const plan::Operation& operation);
  /// Sum over the bucket's ranks of this rank's range, in rank order, into the segment `gradients`; when replicas hold
  /// slices, into the range's place in the bucket's buffer.
  void reduce(const plan::Operation& operation);
  /// Adds the sum of a micro-batch to that of those before it, in the segment `gradients`.
  void accumulate(const plan::Operation& operation);
  /// Where a sum of so many elements goes that this rank holds: the segment `gradients`, or the buffer from which it is
  /// added to what is there.
  std::span<float> held_sum(const plan::Operation& operation, std::size_t elements) const;
  void copy_to_arena(const plan::Operation& operation);
  void copy_from_arena(const plan::Operation& operation);
  std::byte* place(int buffer) const;

  Workbench& bench_;
  const plan::StepPlan& plan_;
};

/// sum[i] = parts[0][i] + parts[1][i] + …, in this order, for parts of sum.size() elements one after another.
void sum_in_order(std::span<const float> parts, std::span<float> sum);

}  // namespace ganymede::worker
