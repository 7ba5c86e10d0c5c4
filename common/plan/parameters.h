#pragma once

#include <vector>

#include "common/plan/builder.h"
#include "common/wire/bucket_form.h"

namespace ganymede::plan {

/// Gathered parameters while a plan grows: when each bucket comes, from whom, and when it goes back. A bucket that the
/// rank holds whole is read in place, without a buffer.
class Parameters {
 public:
  /// All gathers wait for the operation `gathers_wait_for`, if there is one (-1).
  Parameters(Builder& builder, PlanKind kind, int gathers_wait_for);

  /// Where a layer (-1 embedding, `layers` head) is not there any more or not yet, it is gathered.
  void gather(int layer);
  /// Whether layers are gathered while the one before computes; else when they are due.
  bool ahead() const { return !builder_.config.gather_on_compute_lane; }

  /// Lets the operation read the parameters of a layer's buckets, of those that its part works on.
  void read(Operation& operation, int layer) const;

  /// The layer is done: gives its parameters back now, at the end of the pass through the layers, or of the plan.
  /// Gives back too what transfers that were listed before it have used up.
  void release(int layer);
  /// The end of a forward or of a backward.
  void end_of_pass();
  void end_of_plan();

 private:
  struct Live {
    int buffer = -1;    // -1 when read in place or not gathered
    int gathered = -1;  // operation that made the parameters what they are; -1 when they are not there
    int share = -1;     // buffer of what this rank keeps of it for its node
    int gathers = 0;    // so far
  };
  void gather_bucket(int bucket, int layer);
  void gather_from_owners(int bucket, int layer);
  void gather_in_node(int bucket, int layer);
  void reshard(int bucket, int layer);
  void take_buffer(Operation& operation, int bucket);
  void release_now(int layer, bool all);
  bool stays(int bucket) const;

  Builder& builder_;
  PlanKind kind_;
  int wait_for_;
  std::vector<wire::BucketForm> forms_;  // of each bucket
  std::vector<Live> live_;
  std::vector<int> done_;  // layers that go back at the end of the pass
};

}  // namespace ganymede::plan
