#pragma once

#include <vector>

#include "common/placement/expert_range.h"
#include "common/placement/placement.h"

namespace ganymede::placement {

/// Buckets in forward order with their parameters at their offsets, of a rank that holds these experts of each layer.
/// Who shares them, and where they are cut, is left open.
std::vector<Bucket> fill_buckets(const std::vector<model_spec::ParameterSpec>& parameters, const ExpertRange& experts);

}  // namespace ganymede::placement
