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

/// The settings that make a recipe's world that one.
std::vector<std::string> settings_of(const NextWorld& world);

}  // namespace ganymede::coordinator
