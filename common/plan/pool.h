#pragma once

#include <cstdint>

#include "common/config/config.h"
#include "common/placement/placement.h"

namespace ganymede::plan {

/// Bytes of the pool that serves every plan of a rank.
std::int64_t pool_bytes(const config::Config& config, const placement::Placement& placement);

/// Whether a rank's pool lies in its segment `exchange`, where the other ranks of its node read it in place. Else it is
/// memory of the worker alone, and there is no such segment.
bool pool_is_published(const config::Config& config);

}  // namespace ganymede::plan
