#pragma once

#include <vector>

#include "common/plan/builder.h"

namespace ganymede::plan {

/// Gradients while a plan grows: written row by row, and summed over ranks once a step, or once a micro-batch and added
/// up where this rank holds its part. A bucket that the rank holds
/// whole has them in the segment `gradients`, without a buffer.
class Gradients {
 public:
  explicit Gradients(Builder& builder);

  /// Lets the operation, the next that is added, write the gradients of a layer's buckets, taking their buffers on
  /// first use.
  void write(Operation& operation, int layer);
  /// The sum of each of a layer's buckets, and, with the last micro-batch of the step, what becomes of it: stored, and
  /// counted in the norm.
  void reduce(int layer, bool last);
  /// Every bucket was reduced. Returns what the vote waits for.
  std::vector<int> end();

 private:
  struct Live {
    int buffer = -1;   // -1 when in place or none yet
    int written = -1;  // last operation that wrote
    int sum = -1;      // buffer of the sum of this micro-batch; -1 where it is the first
    int sums = 0;      // of micro-batches so far
  };
  /// The sum over ranks; -1 where there is nothing to do. The last operation of it.
  int reduce_bucket(int bucket, int layer, bool last);
  int reduce_shards(int bucket, int layer, bool into_buffer);
  int replica_reduce(int bucket, int layer, bool into_buffer);
  int accumulate(int bucket, int layer);
  void take_sum(Operation& operation, std::int64_t elements);
  void count_in_norm(int bucket, int layer, int reduced);

  Builder& builder_;
  std::vector<Live> live_;
  struct Sum {
    int bucket, layer, reduced;
  };
  std::vector<Sum> uncounted_;  // in the norm
  std::vector<int> norms_;
};

}  // namespace ganymede::plan
