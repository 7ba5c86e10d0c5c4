#include "launcher/coordinator/next_world.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/base/error.h"

namespace ganymede::coordinator {
namespace {

bool contains(const std::vector<int>& nodes, int node) {
  return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
}

/// The largest world that `valid` allows of at most `most` ranks.
std::optional<config::Parallel> largest(int most, int least, const config::Parallel& recipe,
                                        const std::function<bool(const config::Parallel&)>& valid) {
  for (int ranks = most; ranks >= least; --ranks)
    for (int group = recipe.expert_group; group >= 1; --group)
      for (int replicas = recipe.replicas; replicas >= 1; --replicas) {
        bool divides = recipe.expert_group % group == 0 && recipe.replicas % replicas == 0;
        config::Parallel parallel{.ranks = ranks, .expert_group = group, .replicas = replicas};
        if (divides && valid(parallel)) return parallel;
      }
  return std::nullopt;
}

}  // namespace

int least_ranks(const config::Config& recipe) {
  return recipe.elastic.min_ranks > 0 ? recipe.elastic.min_ranks : recipe.parallel.ranks;
}

std::optional<NextWorld> next_world(const Members& now, const std::vector<int>& lost, const std::vector<int>& spares,
                                    const config::Config& recipe,
                                    const std::function<bool(const config::Parallel&)>& valid) {
  int per_node = recipe.topology.ranks_per_node, ranks = recipe.parallel.ranks;
  Members members;
  for (int node : now)
    if (!contains(lost, node)) members.push_back(node);
  if (!contains(members, 0)) return std::nullopt;
  for (int spare : spares)
    if (static_cast<int>(members.size()) < nodes_for(ranks, per_node) && !contains(members, spare))
      members.push_back(spare);
  std::sort(members.begin(), members.end());
  int held = std::min(ranks, static_cast<int>(members.size()) * per_node);
  auto parallel = largest(held, least_ranks(recipe), recipe.parallel, valid);
  if (!parallel) return std::nullopt;
  members.resize(static_cast<std::size_t>(nodes_for(parallel->ranks, per_node)));
  return NextWorld{members, *parallel};
}

namespace {

/// Of the nodes that take part and those that wait, without the ones that are left: members first.
Members candidates(const Members& now, const WorldWish& wish, const std::vector<int>& spares) {
  for (int node : wish.without) {
    if (node == 0) fail_usage("Node 0 is the coordinator: the world cannot form again without it.");
    if (!contains(now, node)) fail_usage("Node {} does not take part, so it cannot be left.", node);
  }
  Members all;
  for (int node : now)
    if (!contains(wish.without, node)) all.push_back(node);
  for (int spare : spares)
    if (!contains(all, spare) && !contains(wish.without, spare)) all.push_back(spare);
  return all;
}

/// Of exactly these ranks.
NextWorld world_of(const config::Parallel& parallel, Members nodes, int per_node) {
  auto needed = static_cast<std::size_t>(nodes_for(parallel.ranks, per_node));
  if (needed > nodes.size())
    fail_usage("{} ranks, {} a node (topology.ranks_per_node), need {} nodes, and {} {} there.", parallel.ranks,
               per_node, needed, nodes.size(), nodes.size() == 1 ? "is" : "are");
  nodes.resize(needed);
  std::sort(nodes.begin(), nodes.end());
  return {nodes, parallel};
}

}  // namespace

NextWorld wished_world(const NextWorld& now, const WorldWish& wish, const std::vector<int>& spares,
                       const config::Config& recipe, const std::function<void(const config::Parallel&)>& check) {
  Members nodes = candidates(now.members, wish, spares);
  config::Config own = recipe;
  int& per_node = own.topology.ranks_per_node;
  if (per_node == 0) per_node = std::max({recipe.parallel.ranks, wish.ranks, now.parallel.ranks});
  config::Parallel parallel = now.parallel;
  if (wish.ranks > 0) parallel.ranks = wish.ranks;
  if (wish.expert_group > 0) parallel.expert_group = wish.expert_group;
  if (wish.replicas > 0) parallel.replicas = wish.replicas;
  NextWorld next;
  if (wish.ranks > 0 || wish.expert_group > 0 || wish.replicas > 0) {
    check(parallel);
    next = world_of(parallel, nodes, per_node);
  } else {
    auto valid = [&](const config::Parallel& one) {
      try {
        check(one);
        return true;
      } catch (const Error&) {
        return false;
      }
    };
    auto found = next_world(nodes, {}, {}, own, valid);
    if (!found)
      fail_usage(
          "The {} {} that would remain cannot hold {} ranks or more of a world that the recipe allows "
          "(elastic.min_ranks); --ranks N asks for fewer.",
          nodes.size(), nodes.size() == 1 ? "node" : "nodes", least_ranks(recipe));
    next = *found;
  }
  bool same = next.members == now.members && next.parallel.ranks == now.parallel.ranks &&
              next.parallel.expert_group == now.parallel.expert_group &&
              next.parallel.replicas == now.parallel.replicas;
  if (same) fail_usage("Nothing would change: the world has {} ranks on these nodes already.", now.parallel.ranks);
  return next;
}

std::vector<std::string> settings_of(const NextWorld& world) {
  return {fmt::format("parallel.ranks={}", world.parallel.ranks),
          fmt::format("parallel.expert_group={}", world.parallel.expert_group),
          fmt::format("parallel.replicas={}", world.parallel.replicas)};
}

}  // namespace ganymede::coordinator
