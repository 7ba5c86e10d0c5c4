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

/// The ranks whose cells the launcher of `node` holds. One node holds all of them, whatever topology.ranks_per_node
/// is; of several, each holds that many and the last one the rest.
RankRange ranks_of(int node, int nodes, const config::Config& config);

/// Throws Error(usage) unless `nodes` nodes hold exactly the ranks of the configuration.
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
