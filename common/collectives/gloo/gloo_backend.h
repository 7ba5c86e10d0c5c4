#pragma once

#include <memory>
#include <string>

#include "common/collectives/pairwise.h"
#include "common/collectives/single.h"

namespace ganymede::collectives {

/// A communicator over TCP through libtorch's ProcessGroupGloo, bound to the network interface `interface` ("lo").
/// Blocks until all members have come, at most the group's timeout. Throws CollectiveError naming the group.
/// Waits end with CollectiveError at the deadline, after `abort`, and mostly when a peer's connection breaks (about 30
/// ms after its process died): Gloo forgets a message that was half transferred by then, so who knows of the death has
/// to call `abort`. The process must ignore SIGPIPE (os::block_signals does): Gloo writes to connections that are
/// closed.
std::unique_ptr<PairwiseCommunicator> make_gloo(const Group& group, std::shared_ptr<Store> store,
                                                const std::string& interface);

}  // namespace ganymede::collectives
