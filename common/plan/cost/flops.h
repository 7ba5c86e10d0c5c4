#pragma once

#include <vector>

#include "common/config/config.h"
#include "common/model_spec/model_spec.h"

namespace ganymede::plan {

/// Floating-point operations of the forward of one row of data.seq_len tokens that is one document (documents that are
/// packed into a row attend to less), by what they are limited by. Expert products are those of a rank when routing is
/// balanced and each rank holds as many experts. Backward takes twice as many, recomputation as many again.
struct ForwardFlops {
  double products = 0;   // projections, dense feed-forward, router, head
  double experts = 0;    // products of the chosen experts
  double attention = 0;  // scores and their product with the values
  double all() const { return products + experts + attention; }
};

/// The model's shapes once, so that thousands of operations are costed quickly.
class FlopCount {
 public:
  explicit FlopCount(const config::Config& config);
  /// -1 embedding (a look-up: nothing), `layers` head.
  const ForwardFlops& forward(int layer) const { return layers_[static_cast<std::size_t>(layer) + 1]; }

 private:
  std::vector<ForwardFlops> layers_;
};

}  // namespace ganymede::plan
