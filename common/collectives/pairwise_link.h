#pragma once

#include <memory>

#include "common/collectives/node_link.h"
#include "common/collectives/pairwise.h"

namespace ganymede::collectives {

/// A node link over the messages of a pairwise communicator, whose members are those of the node. Terms of a sum are
/// received into memory of its own first.
std::unique_ptr<NodeLink> make_pairwise_link(std::unique_ptr<PairwiseCommunicator> messages);

}  // namespace ganymede::collectives
