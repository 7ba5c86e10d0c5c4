#pragma once

#include "common/collectives/collectives.h"

#include <memory>

namespace ganymede::collectives {

/// A communicator over TCP through libtorch's ProcessGroupGloo on `interface` ("lo", or a host name or address to
/// bind to). Blocks until all members have come (at most the group's timeout). Throws CollectiveError.
std::unique_ptr<Communicator> make_gloo(const Group& group, std::shared_ptr<Store> store, const std::string& interface);

/// A group of one: every operation is a local copy. Needs no store.
std::unique_ptr<Communicator> make_single(const Group& group);

}  // namespace ganymede::collectives
