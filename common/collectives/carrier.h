#pragma once

#include <string>
#include <utility>
#include <vector>

#include "common/collectives/composed.h"
#include "common/collectives/topology.h"
#include "common/collectives/traffic_counter.h"

namespace ganymede::collectives {

/// What the operations of a composed communicator work with: members instead of places in a node, and every byte that
/// is sent is counted. For one operation.
class Carrier {
 public:
  Carrier(const NodeMap& node_map, Links& node_links, TrafficCounter& counter, const char* operation, Cargo cargo,
          Deadline deadline)
      : map(node_map),
        links_(node_links),
        counter_(counter),
        operation_(operation),
        cargo_(std::move(cargo)),
        deadline_(deadline) {}

  const NodeMap& map;

  /// Sums inside the node need no memory of their own.
  bool reads_in_place() const { return links_.inside == nullptr || links_.inside->reads_in_place(); }

  /// Messages with members of other nodes; empty ones are left out. All members call it equally often.
  PendingPtr between(const std::vector<Send>& sends, const std::vector<Receive>& receives);
  void wait(const PendingPtr& pending) {
    if (pending) pending->wait(deadline_);
  }

  /// Messages with members of this node, `peer` being a member of the group; empty ones and this member's own are left
  /// out.
  void copy_inside(std::vector<Outgoing> sends, std::vector<Incoming> receives);
  /// `terms` with `peer` this member or -1 are memory of this process.
  void sum_inside(std::vector<Outgoing> sends, std::vector<Term> terms, Element element, std::span<float> sum);

 private:
  std::vector<Outgoing> real(std::vector<Outgoing> sends);

  Links& links_;
  TrafficCounter& counter_;
  const char* operation_;
  Cargo cargo_;
  Deadline deadline_;
};

}  // namespace ganymede::collectives
