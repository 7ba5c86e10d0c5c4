#pragma once

#include <memory>

#include "common/collectives/collectives.h"
#include "common/collectives/node_link.h"
#include "common/collectives/pairwise.h"

namespace ganymede::collectives {

/// How a communicator reaches its members.
struct Links {
  std::unique_ptr<NodeLink> inside;               // the members of this node; none when it is alone there
  std::unique_ptr<PairwiseCommunicator> between;  // all members; none when all are on one node
};

/// A communicator by topology: messages inside a node through one link, between nodes through another. Every part of an
/// all_gather crosses once into a node, where each member fetches a share and they pass it on; of a reduce_scatter each
/// member sums a share over its node, and only these sums cross. What is under way makes progress behind computation.
/// `scratch_bytes` bounds the memory for what has to be received before it is summed.
std::unique_ptr<Communicator> make_composed(const Group& group, Links links, std::size_t scratch_bytes = 16u << 20);

}  // namespace ganymede::collectives
