#pragma once

#include <atomic>
#include <memory>

#include "common/collectives/node_link.h"
#include "common/collectives/shm/port.h"

namespace ganymede::collectives {

/// A node link over shared memory: peers read each other's published memory in place; what is not published passes
/// through the staging area of a channel. `group` has the ranks of this node alone; blocks until all have come, at most
/// its timeout. `port` must outlive it. Throws CollectiveError naming the group, Error when no channel is free.
/// A peer that ends its communicator, or whose process dies, ends the waits at once.
std::unique_ptr<NodeLink> make_shm_link(Port& port, const Group& group, Store& store);

}  // namespace ganymede::collectives
