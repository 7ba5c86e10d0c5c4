#include "launcher/coordinator/node_table.h"

#include <algorithm>
#include <limits>

#include "common/base/error.h"

namespace ganymede::coordinator {
namespace {

constexpr double seat_is_kept = 5;  // seconds of silence; nodes report several times a second
constexpr double own_end = 7;       // seconds that a node takes to end its services once it has given up

}  // namespace

NodeTable::NodeTable(const std::vector<NodeAddress>& addresses, const Members& members, const config::Config& config,
                     double now)
    : shard_group_(config.parallel.ranks / config.parallel.replicas),
      world_(config.parallel.ranks),
      timeout_(config.launch.node_timeout_seconds),
      elastic_(config.elastic.wanted()) {
  int nodes = static_cast<int>(addresses.size());
  for (int node = 1; node < nodes; ++node)
    nodes_.push_back({.address = addresses[static_cast<std::size_t>(node)],
                      .ranks = ranks_of(node, members, config),
                      .host = "",
                      .heard = now});
}

NodeTable::Node& NodeTable::at(int node) {
  int named = static_cast<int>(nodes_.size());
  if (node >= 1 && node <= named) return nodes_[static_cast<std::size_t>(node - 1)];
  fail_usage("There is no node {} to start here: --nodes names {}, and node 0 is the coordinator's.", node, named + 1);
}

std::string NodeTable::name(int node) const {
  return fmt::format("node {} ({})", node, nodes_[static_cast<std::size_t>(node - 1)].address.text());
}

void NodeTable::check_count(int node, int nodes) const {
  int named = static_cast<int>(nodes_.size()) + 1;
  if (nodes != named)
    fail_usage("Node {} was started with {} nodes and node 0 with {}: --nodes has to be the same on all.", node, nodes,
               named);
}

bool NodeTable::hello(const Hello& hello, double now) {
  check_count(hello.node, hello.nodes);
  Node& node = at(hello.node);
  bool taken = node.seat != 0 && node.seat != hello.seat && (begun_ || now - node.heard < seat_is_kept);
  // A machine that was started anew is on the same host; two machines with one --node are a mistake.
  bool came_back = taken && elastic_ && node.host == hello.host;
  if (taken && !came_back)
    fail_usage("Node {} is in the run already, on {}: every node has to be started once, with a --node of its own.",
               hello.node, node.host);
  if (came_back || !node.member()) {
    if (!is_left_out(hello.node, hello.seat)) node.asked = now;
    return false;
  }
  node.seat = hello.seat;
  node.host = hello.host;
  node.heard = now;
  return true;
}

bool NodeTable::is_left_out(int node, std::uint64_t seat) const {
  auto found = left_out_.find(node);
  return found != left_out_.end() && found->second == seat;
}

std::map<int, std::uint64_t> NodeTable::seats() const {
  std::map<int, std::uint64_t> seats;
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    if (nodes_[i].member()) seats[static_cast<int>(i) + 1] = nodes_[i].seat;
  return seats;
}

std::vector<int> NodeTable::spares(double now) const {
  std::vector<int> spares;
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    if (now - nodes_[i].asked < seat_is_kept) spares.push_back(static_cast<int>(i) + 1);
  return spares;
}

int NodeTable::count() const {
  return static_cast<int>(std::count_if(nodes_.begin(), nodes_.end(), [](const Node& node) { return node.member(); }));
}

std::vector<int> NodeTable::silent_members(double now, double patience) const {
  std::vector<int> silent;
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    if (nodes_[i].member() && now - nodes_[i].heard > patience) silent.push_back(static_cast<int>(i) + 1);
  return silent;
}

std::vector<int> NodeTable::lost(double now) const {
  std::vector<int> lost;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const Node& node = nodes_[i];
    bool ended = node.left || (node.state && node.state->ended);
    if (node.member() && !ended && now - node.heard > timeout_ + own_end) lost.push_back(static_cast<int>(i) + 1);
  }
  return lost;
}

void NodeTable::check(const NodeState& state, const Node& node) const {
  if (node.seat != 0 && node.seat != state.seat)
    fail_usage("Node {} is in the run already, on {}: this launcher is not the one.", state.node, node.host);
  bool right = static_cast<int>(state.cells.size()) == node.ranks.count;
  for (std::size_t i = 0; right && i < state.cells.size(); ++i)
    right = state.cells[i].rank == node.ranks.first + static_cast<int>(i);
  auto may_write = [&](int rank) {
    for (int i = 0; i < node.ranks.count; ++i)
      if (rank >= 0 && rank < world_ && (node.ranks.first + i - rank) % shard_group_ == 0) return true;
    return false;
  };
  for (const PartState& part : state.parts) right = right && may_write(part.rank);
  if (!right)
    fail("Node {} reports of other ranks than its {} from {} on.", state.node, node.ranks.count, node.ranks.first);
}

std::vector<int> NodeTable::take(NodeState state, double now) {
  Node& node = at(state.node);
  check(state, node);
  std::vector<int> lost;
  if (node.state) {
    bool replaced = node.state->session != state.session;
    for (std::size_t i = 0; i < state.cells.size(); ++i)
      if (replaced || state.cells[i].lost > node.state->cells[i].lost) lost.push_back(state.cells[i].rank);
  }
  node.seat = state.seat;
  node.heard = now;
  node.state = std::move(state);
  return lost;
}

int NodeTable::node_of(int rank) const {
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    if (nodes_[i].ranks.contains(rank)) return static_cast<int>(i) + 1;
  return 0;
}

std::vector<NodeState> NodeTable::states() const {
  std::vector<NodeState> states;
  for (const Node& node : nodes_)
    if (node.state) states.push_back(*node.state);
  return states;
}

const NodeState* NodeTable::state_of(int node) const {
  if (node < 1 || node > static_cast<int>(nodes_.size())) return nullptr;
  const Node& one = nodes_[static_cast<std::size_t>(node - 1)];
  return one.state ? &*one.state : nullptr;
}

bool NodeTable::all_here() const { return missing().empty(); }

std::vector<int> NodeTable::missing() const {
  std::vector<int> missing;
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    if (nodes_[i].member() && !nodes_[i].state) missing.push_back(static_cast<int>(i) + 1);
  return missing;
}

template <class Test>
bool NodeTable::all_cells(const Test& test) const {
  return std::all_of(nodes_.begin(), nodes_.end(), [&](const Node& node) {
    bool has_all = node.state && std::all_of(node.state->cells.begin(), node.state->cells.end(), test);
    return !node.member() || has_all;
  });
}

bool NodeTable::all_loaded() const {
  return all_cells([](const CellState& cell) { return cell.loaded; });
}

bool NodeTable::all_formed(std::uint64_t generation) const {
  return all_cells([&](const CellState& cell) { return cell.formed == generation; });
}

bool NodeTable::all_running() const {
  return all_cells([](const CellState& cell) { return cell.running; });
}

bool NodeTable::workers_finished() const {
  return all_cells([](const CellState& cell) { return cell.finished; });
}

bool NodeTable::any_worker_finished() const {
  return std::any_of(nodes_.begin(), nodes_.end(), [](const Node& node) {
    return node.state && std::any_of(node.state->cells.begin(), node.state->cells.end(),
                                     [](const CellState& cell) { return cell.finished; });
  });
}

bool NodeTable::all_ended(double now, bool resumed) const {
  double patience = timeout_ + (elastic_ ? own_end : 0);
  return std::all_of(nodes_.begin(), nodes_.end(), [&](const Node& node) {
    bool came = node.member() && (node.state || node.seat != 0 || resumed);
    return !came || node.left || (node.state && node.state->ended) || now - node.heard > patience;
  });
}

std::uint64_t NodeTable::highest_generation() const {
  std::uint64_t highest = 0;
  for (const Node& node : nodes_)
    if (node.state) highest = std::max(highest, node.state->generation);
  return highest;
}

int NodeTable::restarts() const {
  int sum = 0;
  for (const Node& node : nodes_) sum += node.state ? node.state->restarts : 0;
  return sum;
}

double NodeTable::checkpoint_idle() const {
  double idle = std::numeric_limits<double>::infinity();
  for (const Node& node : nodes_)
    if (node.state) idle = std::min(idle, node.state->checkpoint_idle);
  return idle;
}

StopWish NodeTable::stop_wish() const {
  StopWish wish = StopWish::none;
  for (const Node& node : nodes_)
    if (node.state) wish = std::max(wish, node.state->stop);
  return wish;
}

bool NodeTable::settled(const std::vector<int>& lost) const {
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    bool remains = nodes_[i].member() && !std::ranges::count(lost, static_cast<int>(i) + 1);
    if (remains && !(nodes_[i].state && nodes_[i].state->settled)) return false;
  }
  return true;
}

std::vector<std::uint64_t> NodeTable::decided(const std::vector<int>& lost) const {
  std::vector<std::uint64_t> steps;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (!nodes_[i].state || std::ranges::count(lost, static_cast<int>(i) + 1)) continue;
    for (const CellState& cell : nodes_[i].state->cells) steps.push_back(cell.decided);
  }
  return steps;
}

std::vector<int> NodeTable::ranks(const std::vector<int>& nodes) const {
  std::vector<int> ranks;
  for (int node : nodes) {
    RankRange range = nodes_.at(static_cast<std::size_t>(node - 1)).ranks;
    for (int i = 0; i < range.count; ++i) ranks.push_back(range.first + i);
  }
  return ranks;
}

const NodeState* NodeTable::failed() const {
  for (const Node& node : nodes_)
    if (node.state && !node.state->failure.empty()) return &*node.state;
  return nullptr;
}

std::optional<NodeTable::Silent> NodeTable::silent(double now, double patience, double start_patience) const {
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const Node& node = nodes_[i];
    if (!node.member() || (node.state && node.state->ended)) continue;
    double waited = now - node.heard;
    if (waited <= (node.state ? patience : start_patience)) continue;
    int index = static_cast<int>(i) + 1;
    return Silent{index, name(index), waited, node.state.has_value()};
  }
  return std::nullopt;
}

}  // namespace ganymede::coordinator
