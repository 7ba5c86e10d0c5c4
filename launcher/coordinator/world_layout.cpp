#include "launcher/coordinator/world_layout.h"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <set>
#include <sstream>

#include "common/base/error.h"

namespace ganymede::coordinator {
namespace {

constexpr int highest_port = 65535;

int parse_port(const std::string& digits, const std::string& address) {
  int port = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (error == std::errc() && end == digits.data() + digits.size() && port >= 1 && port <= highest_port) return port;
  fail_usage("--nodes: the port of '{}' is not a number from 1 to {}.", address, highest_port);
}

NodeAddress parse_address(const std::string& text) {
  NodeAddress address;
  bool bracketed = text.starts_with('[');
  std::size_t end = bracketed ? text.find(']') : text.find(':');
  if (bracketed && end == std::string::npos) fail_usage("--nodes: '{}' has no ] after its address.", text);
  address.host = bracketed ? text.substr(1, end - 1) : text.substr(0, end);
  std::string rest = end == std::string::npos ? "" : text.substr(bracketed ? end + 1 : end);
  if (address.host.empty() || (!rest.empty() && rest[0] != ':'))
    fail_usage("--nodes: '{}' is not of the form host:port.", text);
  if (!rest.empty()) address.port = parse_port(rest.substr(1), text);
  return address;
}

}  // namespace

Members first_members(int nodes, const config::Config& config) {
  Members members(static_cast<std::size_t>(std::max(1, nodes - config.elastic.spare_nodes)));
  std::iota(members.begin(), members.end(), 0);
  return members;
}

RankRange ranks_of(int node, const Members& members, const config::Config& config) {
  auto found = std::find(members.begin(), members.end(), node);
  if (found == members.end()) return {};
  int ranks = config.parallel.ranks;
  if (members.size() == 1) return {0, ranks};
  int first = std::min(static_cast<int>(found - members.begin()) * config.topology.ranks_per_node, ranks);
  return {first, std::min(config.topology.ranks_per_node, ranks - first)};
}

int nodes_for(int ranks, int per_node) { return (ranks + per_node - 1) / per_node; }

void check_nodes(int nodes, const config::Config& config) {
  int spares = config.elastic.spare_nodes;
  if (nodes <= 1 && spares > 0)
    fail_usage("'elastic.spare_nodes' is {}, but the run has one node: name all nodes, spares last, with --nodes.",
               spares);
  if (nodes <= 1) return;
  int ranks = config.parallel.ranks, per_node = config.topology.ranks_per_node;
  if (per_node == 0)
    fail_usage("Several nodes need topology.ranks_per_node: --set topology.ranks_per_node={} puts {} {} on {} nodes.",
               (ranks + nodes - 1) / nodes, ranks, ranks == 1 ? "rank" : "ranks", nodes);
  int needed = nodes_for(ranks, per_node);
  std::string and_spares = spares == 0 ? "" : fmt::format(", with {} spare (elastic.spare_nodes)", spares);
  if (needed + spares != nodes)
    fail_usage("{} ranks (parallel.ranks), {} a node (topology.ranks_per_node), are on {} {}{}, but --nodes names {}.",
               ranks, per_node, needed, needed == 1 ? "node" : "nodes", and_spares, nodes);
}

std::string NodeAddress::text() const {
  std::string name = host.find(':') == std::string::npos ? host : "[" + host + "]";
  return port == 0 ? name : fmt::format("{}:{}", name, port);
}

std::vector<NodeAddress> parse_nodes(const std::string& text) {
  std::vector<NodeAddress> nodes;
  std::set<std::string> seen;
  std::istringstream list(text);
  for (std::string one; std::getline(list, one, ',');) {
    nodes.push_back(parse_address(one));
    if (!seen.insert(nodes.back().text()).second) fail_usage("--nodes: '{}' is named twice.", one);
  }
  if (nodes.empty()) fail_usage("--nodes is empty: name every node, as host:port,host:port.");
  if (nodes.size() > 1 && nodes[0].port == 0)
    fail_usage("--nodes: '{}', node 0, needs a port, where the other nodes reach it.", nodes[0].host);
  return nodes;
}

}  // namespace ganymede::coordinator
