#pragma once

#include <cstdint>
#include <string>

#include "common/shm/segment.h"

namespace ganymede::shm {

/// Communicators that a rank's worker has at a time, at most: control, gathers, reductions and exchange, of the world
/// and of groups of it.
constexpr int collective_channels = 12;
/// Of one channel: the table of messages, and the staging area for what lies in no segment.
constexpr std::int64_t collective_channel_bytes = 1 << 20;

/// "exchange": `channels` (u8 [collective_channels][collective_channel_bytes]: what collectives::Port takes, zero at
/// first). Written by the worker alone. There is one where plan::pool_is_published.
Layout exchange_layout();

/// "pool.<epoch>": `pool` (u8 [pool_bytes]: the buffers of a step as the plan of the epoch lays them out, which the
/// ranks of the node read in place). Written by the worker alone. There is one where there is an "exchange".
Layout pool_layout(std::int64_t pool_bytes, std::uint64_t epoch);
std::string pool_name(std::uint64_t epoch);

}  // namespace ganymede::shm
