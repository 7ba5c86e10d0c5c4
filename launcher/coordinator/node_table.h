#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "launcher/coordinator/node_state.h"
#include "launcher/coordinator/world_layout.h"

namespace ganymede::coordinator {

/// What the coordinator knows of the other nodes that take part, and which ones wait for a place; of a run on one node
/// it is empty, and then everything is as "all nodes" of none. Times are seconds of any monotonic clock. Not
/// thread-safe.
class NodeTable {
 public:
  /// `addresses`: of all nodes, node 0 first.
  NodeTable(const std::vector<NodeAddress>& addresses, const Members& members, const config::Config& config,
            double now);

  struct Hello {
    int node = 0, nodes = 0;
    std::uint64_t seat = 0;
    std::string host;
  };
  /// Throws Error(usage) when a launcher was started with another number of nodes.
  void check_count(int node, int nodes) const;
  /// A launcher wants to be the node's. False when it has to wait for a place: the node is a spare or was lost, or, in
  /// an elastic run, was started anew and the launcher before it may still live. Throws Error(usage) when it cannot be:
  /// another number of nodes, no such node, or the seat is taken. Until the run has begun, a seat whose launcher has
  /// been silent for a while is free again.
  bool hello(const Hello& hello, double now);
  /// By node: seats that wait, but are not taken in.
  void leave_out(const std::map<int, std::uint64_t>& seats) { left_out_ = seats; }
  bool is_left_out(int node, std::uint64_t seat) const;
  /// Of the nodes that take part.
  std::map<int, std::uint64_t> seats() const;
  /// A node that says hello while the world is being left has no services any more: it counts as ended.
  void has_left(int node) { at(node).left = true; }
  /// Those that wait for a place now, ascending.
  std::vector<int> spares(double now) const;

  /// Takes in a report. Returns the ranks whose workers were lost since the one before: those that it counts, and all
  /// of a launcher that was replaced. Throws Error for a report that cannot be one of this run.
  std::vector<int> take(NodeState state, double now);
  /// From now on nobody takes the seat of another.
  void run_begins() { begun_ = true; }

  int count() const;  // that take part, without node 0
  bool elastic() const { return elastic_; }
  int node_of(int rank) const;            // 0 or that of another node
  std::vector<NodeState> states() const;  // of those that have reported

  const NodeState* state_of(int node) const;  // its newest report; null: none, or no such node

  bool all_here() const;             // every node has reported
  std::vector<int> missing() const;  // those that have not
  bool all_loaded() const;
  bool all_formed(std::uint64_t generation) const;
  bool all_running() const;
  bool workers_finished() const;
  bool any_worker_finished() const;
  /// Every node that has come has said that it has ended, or has been silent for launch.node_timeout_seconds. A table
  /// of a coordinator that was `resumed` waits as well for those that have not come yet: the one before knew them.
  bool all_ended(double now, bool resumed) const;
  std::uint64_t highest_generation() const;
  int restarts() const;
  double checkpoint_idle() const;  // seconds; the least of all nodes, endless without nodes
  StopWish stop_wish() const;
  /// Whether no worker lives on the nodes that take part but `lost`, because the world is rescuing; and what their
  /// ranks have decided.
  bool settled(const std::vector<int>& lost) const;
  std::vector<std::uint64_t> decided(const std::vector<int>& lost) const;
  /// The ranks of these nodes.
  std::vector<int> ranks(const std::vector<int>& nodes) const;
  /// A node on which the run cannot go on.
  const NodeState* failed() const;
  /// A node that has not reported for `patience` seconds, or in its first `start_patience`.
  struct Silent {
    int node = 0;
    std::string name;  // "node 1 (host:port)"
    double seconds = 0;
    bool came = false;  // it has reported before
  };
  std::optional<Silent> silent(double now, double patience, double start_patience) const;
  /// Those that take part and have not reported for `patience` seconds.
  std::vector<int> silent_members(double now, double patience) const;
  /// Those that have been silent so long that their services have ended, if they still live: a node that does not
  /// hear of its coordinator for launch.node_timeout_seconds ends them by itself.
  std::vector<int> lost(double now) const;
  std::string name(int node) const;

 private:
  struct Node {
    NodeAddress address;
    RankRange ranks;         // none: it takes no part
    std::uint64_t seat = 0;  // 0: free
    std::string host;        // as the launcher calls its machine
    double heard = 0;        // seconds; at the beginning: of this table's
    std::optional<NodeState> state = {};
    bool left = false;           // its services have ended, and it asks for a place in the next world
    double asked = never_asked;  // seconds; when one that waits for a place asked last
    bool member() const { return ranks.count > 0; }
  };
  static constexpr double never_asked = -1e18;
  Node& at(int node);
  void check(const NodeState& state, const Node& node) const;
  template <class Test>
  bool all_cells(const Test& test) const;

  std::vector<Node> nodes_;  // of --nodes, without node 0
  std::map<int, std::uint64_t> left_out_;
  int shard_group_;  // ranks that are as many apart hold the same shard
  int world_;        // ranks
  double timeout_;   // seconds of silence after which a node is lost
  bool elastic_;
  bool begun_ = false;
};

}  // namespace ganymede::coordinator
