#include "launcher/supervisor/reforming.h"

#include <fmt/ranges.h>

#include "common/base/error.h"

namespace ganymede::launcher {

std::optional<coordinator::NextWorld> Reforming::next(const coordinator::NextWorld& now, const std::vector<int>& lost,
                                                      const std::vector<int>& spares) const {
  if (lost.empty()) return now;
  auto valid = [this](const config::Parallel& parallel) {
    std::vector<std::string> settings = options_.settings;
    for (const std::string& setting : coordinator::settings_of({{}, parallel})) settings.push_back(setting);
    try {
      config::load(options_.recipe, settings);
      return true;
    } catch (const Error&) {
      return false;
    }
  };
  return coordinator::next_world(now.members, lost, spares, config::load(options_.recipe, options_.settings), valid);
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
