#pragma once

#include <string>
#include <vector>

#include "common/plan/plan.h"
#include "common/plan/traffic.h"
#include "common/wire/bucket_form.h"

/// The growing plan: operations in order, and the buffers that are alive at its end.
namespace ganymede::plan {

class Builder {
 public:
  Builder(const config::Config& config, const placement::Placement& placement);

  /// Adds an operation at the end; returns its index.
  int add(Operation operation);
  int new_buffer(BufferKind kind, const std::string& name, std::int64_t bytes, int bucket, int layer, int row);

  /// Operations that make the bucket's parameters, or its gradients, what they now are.
  struct Live {
    int parameters = -1;  // buffer; -1 when read in place or not gathered
    int gathered = -1;    // operation
    int gradients = -1;   // buffer; -1 when in place or none yet
    int written = -1;     // last operation that wrote gradients
  };
  Live& live(int bucket) { return live_[bucket]; }

  const std::vector<int>& buckets_of(int layer) const;  // -1 embedding, `layers` head
  /// Lets the operation read the parameters of a layer's buckets.
  void read_parameters(Operation& operation, int layer);
  /// Lets it write the gradients of a layer's buckets, taking their buffers on first use.
  void write_gradients(Operation& operation, int layer);

  void gather(int layer);
  /// Gives back the layer's parameters, and what transfers that were listed before it have used up.
  void release(int layer);
  /// The next release gives the buffer back: for what a transfer uses that runs beside computation.
  void give_back_later(int buffer) { spent_.push_back(buffer); }
  /// reduce, store and norm of each bucket of a layer.
  void reduce(int layer);

  /// Dependencies, offsets, sizes; the builder is used up.
  StepPlan finish();

  const config::Config& config;
  const placement::Placement& placement;
  const int layers;
  std::vector<int> norms;  // operations that the vote waits for

 private:
  void gather_bucket(int bucket, int layer);
  /// The last operation of a bucket's sum.
  int reduce_bucket(int bucket, int layer);
  int replica_reduce(int bucket, int layer);

  StepPlan plan_;
  /// Buffers of transfers that run beside computation. Whatever stands behind a free in the list waits for it, so these
  /// are not freed by the transfer itself, but by the next release, behind the computation that runs beside it.
  std::vector<int> spent_;
  const TrafficChoices choices_;
  std::vector<wire::BucketForm> forms_;  // of each bucket's parameters
  std::vector<Live> live_;
  std::vector<std::vector<int>> buckets_;  // by layer + 1
};

/// Fills `after` from what operations share (buffers) and from the order of frees, on top of what is there.
void complete_dependencies(StepPlan& plan);

/// Assigns offsets by lifetime (largest first, lowest place that is free for all of its life) and the sizes.
void lay_out_buffers(StepPlan& plan);

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
