#pragma once

#include "common/placement/placement.h"

namespace ganymede::placement {

/// Fills group, unit, cut, slice and shard_offset of the buckets, and shard_elements. Buckets have their parameters,
/// and the placement says where in the world the rank stands. `experts`: of a layer, at all places.
void share_out(Placement& placement, int experts);

}  // namespace ganymede::placement
