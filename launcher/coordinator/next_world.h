#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "launcher/coordinator/world_layout.h"

/// Which world a run goes on with when nodes are lost.
namespace ganymede::coordinator {

struct NextWorld {
  Members members;
  config::Parallel parallel;
};

/// The fewest ranks of a world that forms again.
int least_ranks(const config::Config& recipe);

/// Without the `lost` nodes, with those of `spares` (nodes that wait, ascending) that are needed: with as many ranks as
/// the recipe has, else with the most that the nodes hold and that are `valid`, with expert group and replicas of the
/// recipe or, where these do not fit, smaller ones. Nothing when fewer than `least_ranks` would be left, or node 0 is
/// lost.
std::optional<NextWorld> next_world(const Members& now, const std::vector<int>& lost, const std::vector<int>& spares,
                                    const config::Config& recipe,
                                    const std::function<bool(const config::Parallel&)>& valid);

/// What a person wants of the next world.
struct WorldWish {
  int ranks = 0, expert_group = 0, replicas = 0;  // 0: ranks as many as the recipe has or the nodes hold, groups as now
  std::vector<int> without = {};                  // nodes
};

/// The world that is wished for in the place of `now`; topology.ranks_per_node 0: one node holds all ranks. `check`
/// throws Error for one that the recipe does not allow. Throws Error(usage) for nodes that cannot be left, too few
/// nodes, and when nothing would change.
NextWorld wished_world(const NextWorld& now, const WorldWish& wish, const std::vector<int>& spares,
                       const config::Config& recipe, const std::function<void(const config::Parallel&)>& check);

/// The settings that make a recipe's world that one.
std::vector<std::string> settings_of(const NextWorld& world);

}  // namespace ganymede::coordinator
