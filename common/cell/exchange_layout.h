#pragma once

#include <cstdint>

#include "common/shm/segment.h"

namespace ganymede::shm {

/// Communicators that a rank's worker has at a time, at most: control, gathers, reductions and exchange, of the world
/// and of groups of it.
constexpr int collective_channels = 12;
/// Of one channel: the table of messages, and the staging area for what lies in no segment.
constexpr std::int64_t collective_channel_bytes = 1 << 20;

/// "exchange": `channels` (u8 [collective_channels][collective_channel_bytes]: what collectives::Port takes, zero at
/// first) and `pool` (u8 [pool_bytes]: the buffers of a step as the plan lays them out, which the ranks of the node
/// read in place). Written by the worker alone.
/// There is one where plan::pool_is_published.
Layout exchange_layout(std::int64_t pool_bytes);

}  // namespace ganymede::shm
