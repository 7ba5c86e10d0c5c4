#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/placement/placement.h"

namespace ganymede::placement {

/// Consecutive elements of a bucket's flat array.
struct FlatRange {
  std::int64_t begin = 0, end = 0;
};

/// What each member has to get of `amount` elements so that all come as near to one level as they can, when they hold
/// `loads` elements already. The shares add up to `amount`, but for less than one element a member.
std::vector<std::int64_t> level_shares(std::span<const std::int64_t> loads, std::int64_t amount);

/// `loads.size() + 1` boundaries that split the range at the row boundaries nearest to the shares that level the
/// members' loads. A member may get an empty part. The ends of the range have to be row boundaries or gaps' ends.
std::vector<std::int64_t> cut_at_rows(const Bucket& bucket, const std::vector<model_spec::ParameterSpec>& parameters,
                                      FlatRange range, std::span<const std::int64_t> loads);

/// The whole bucket at whole matrices, all of one size: everyone the same number, and those who hold least so far one
/// more where they do not divide evenly. So owners rotate from layer to layer.
std::vector<std::int64_t> cut_at_matrices(const Bucket& bucket, std::span<const std::int64_t> loads);

/// The whole bucket at whole experts, whose number is a multiple of `members`.
std::vector<std::int64_t> cut_at_experts(const Bucket& bucket, int experts, int members);

}  // namespace ganymede::placement
