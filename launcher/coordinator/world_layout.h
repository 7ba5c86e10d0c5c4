#pragma once

#include <string>
#include <vector>

#include "common/config/config.h"

/// Which ranks live on which node of a run over several nodes.
namespace ganymede::coordinator {

struct RankRange {
  int first = 0, count = 0;
  bool contains(int rank) const { return rank >= first && rank < first + count; }
};

/// The nodes that take part, by their index in --nodes, ascending; node 0 always does.
using Members = std::vector<int>;

/// Those that a run over `nodes` nodes (0: it has no --nodes) begins with: all but the spares.
Members first_members(int nodes, const config::Config& config);

/// The ranks whose cells the launcher of `node` holds; none when it is no member. One member holds all of them,
/// whatever topology.ranks_per_node is; of several, each holds that many and the last one the rest.
RankRange ranks_of(int node, const Members& members, const config::Config& config);

/// Nodes that it takes to hold the ranks of the configuration, `per_node` on each.
int nodes_for(int ranks, int per_node);

/// Throws Error(usage) unless `nodes` nodes, without the spares, hold exactly the ranks of the configuration.
void check_nodes(int nodes, const config::Config& config);

/// "host:port", "[v6 address]:port".
struct NodeAddress {
  std::string host;
  int port = 0;
  std::string text() const;
};

/// "host:port,host:port,…". The port of node 0 is the coordinator's; the others' may be left out (0). Throws
/// Error(usage) for what is no address, and for one that comes twice.
std::vector<NodeAddress> parse_nodes(const std::string& text);

}  // namespace ganymede::coordinator
