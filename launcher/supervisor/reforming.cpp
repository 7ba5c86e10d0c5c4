#include "launcher/supervisor/reforming.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "common/base/error.h"
#include "common/base/log.h"

namespace ganymede::launcher {

std::optional<coordinator::NextWorld> Reforming::next(const coordinator::NextWorld& now, const std::vector<int>& lost,
                                                      const std::vector<int>& spares) const {
  if (lost.empty()) return now;
  auto valid = [this](const config::Parallel& parallel) {
    try {
      load(parallel);
      return true;
    } catch (const Error&) {
      return false;
    }
  };
  return coordinator::next_world(now.members, lost, spares, config::load(options_.recipe, options_.settings), valid);
}

/// Throws Error where the recipe does not allow it.
config::Config Reforming::load(const config::Parallel& parallel) const {
  std::vector<std::string> settings = options_.settings;
  for (const std::string& setting : coordinator::settings_of({{}, parallel})) settings.push_back(setting);
  return config::load(options_.recipe, settings);
}

coordinator::NextWorld Reforming::wished(const coordinator::NextWorld& now, const coordinator::WorldWish& wish,
                                         const std::vector<int>& spares) const {
  config::Config recipe = config::load(options_.recipe, options_.settings);
  if (options_.nodes.size() <= 1) recipe.topology.ranks_per_node = 0;
  return coordinator::wished_world(now, wish, spares, recipe,
                                   [this](const config::Parallel& parallel) { load(parallel); });
}

void Reforming::wish(coordinator::WorldWish wish, const std::map<int, std::uint64_t>& seats) {
  for (int node : wish.without)
    if (auto seat = seats.find(node); seat != seats.end()) left_out_.insert_or_assign(node, seat->second);
  wish_ = std::move(wish);
}

std::optional<coordinator::NextWorld> Reforming::leave(const coordinator::NextWorld& now, const std::vector<int>& lost,
                                                       const std::vector<int>& spares) {
  if (!wish_) return next(now, lost, spares);
  coordinator::WorldWish wish = *std::exchange(wish_, std::nullopt);
  std::ranges::copy_if(lost, std::back_inserter(wish.without),
                       [&](int node) { return std::ranges::count(wish.without, node) == 0; });
  try {
    return wished(now, wish, spares);
  } catch (const Error& error) {
    log::warn("the world cannot form as it was asked to: {}", error.what());
    return next(now, lost, spares);
  }
}

std::string Reforming::why_not(const coordinator::NextWorld& now, const std::vector<int>& lost) const {
  config::Config recipe = config::load(options_.recipe, options_.settings);
  return fmt::format(
      "No spare waits, and the {} of {} nodes that remain cannot hold {} ranks or more of a world that the recipe "
      "allows (elastic.min_ranks).",
      now.members.size() - lost.size(), now.members.size(), coordinator::least_ranks(recipe));
}

bool Reforming::allowed(double now) {
  if (!policy_) {
    config::Launch launch = config::load(options_.recipe, options_.settings).launch;
    policy_.emplace(launch.restart_budget, launch.restart_window_seconds);
  }
  return policy_->died(now).has_value();
}

std::string describe(const coordinator::NextWorld& world) {
  int ranks = world.parallel.ranks;
  return fmt::format("with {} {} on {} {}", ranks, ranks == 1 ? "rank" : "ranks",
                     world.members.size() == 1 ? "node" : "nodes", fmt::join(world.members, ", "));
}

}  // namespace ganymede::launcher
