#pragma once

#include <cstdint>
#include <vector>

#include "common/placement/placement.h"

namespace ganymede::placement {

/// `members + 1` boundaries that split the bucket's flat array at the row boundaries nearest to equal shares.
/// Members of a bucket with fewer rows than members may get an empty range.
std::vector<std::int64_t> cut_at_rows(const Bucket& bucket, const std::vector<model_spec::ParameterSpec>& parameters,
                                      int members);

/// The same for an experts bucket, at whole experts. Where they do not divide evenly, the members that hold one more
/// rotate with `turn` (the number of the MoE layer), so that over all layers everyone holds alike.
std::vector<std::int64_t> cut_at_experts(const Bucket& bucket, int experts, int members, int turn);

}  // namespace ganymede::placement
