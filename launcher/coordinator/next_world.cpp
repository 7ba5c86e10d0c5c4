#include "launcher/coordinator/next_world.h"

#include <fmt/format.h>

#include <algorithm>

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

std::vector<std::string> settings_of(const NextWorld& world) {
  return {fmt::format("parallel.ranks={}", world.parallel.ranks),
          fmt::format("parallel.expert_group={}", world.parallel.expert_group),
          fmt::format("parallel.replicas={}", world.parallel.replicas)};
}

}  // namespace ganymede::coordinator
