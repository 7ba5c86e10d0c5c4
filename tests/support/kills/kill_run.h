#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "tests/support/kills/strike.h"
#include "tests/support/undisturbed_run.h"

namespace ganymede::test {

/// A world whose services are killed. All of them together have every kind of operation.
struct KillWorld {
  std::string name;
  int ranks = 1;
  std::vector<std::string> settings;
};

inline std::vector<KillWorld> kill_worlds() {
  std::vector<std::string> muon = {"optimizer.name=muon", "optimizer.lr=0.02", "optimizer.group.rest.lr=3e-3",
                                   "offload.fraction=0.5"};
  auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), muon.begin(), muon.end());
    return more;
  };
  return {{"OneRank", 1, with({"recompute=\"full\""})},
          {"TwoRanks", 2, with({"parallel.expert_group=2", "micro_batch.rows=3", "micro_batch.reduce=\"each\""})},
          {"FourRanksOfTwoNodes", 4, with({"topology.ranks_per_node=2", "dense.reshard=\"node\""})},
          {"FourRanksOfTwoReplicas", 4, {"parallel.replicas=2", "replicas.state=\"sharded\"", "stream_update=false"}}};
}

/// Settings of both the disturbed and the undisturbed run, but for their steps.
inline std::vector<std::string> settings_of(const KillWorld& world) {
  std::vector<std::string> settings = UndisturbedRun::settings(100'000, 3);
  settings.insert(settings.end(), world.settings.begin(), world.settings.end());
  // With a short window each death is soon forgotten: no replacement waits for long.
  for (const std::string& more :
       {fmt::format("parallel.ranks={}", world.ranks), std::string("validation.every_steps=0"),
        std::string("launch.restart_budget=100000"), std::string("launch.restart_window_seconds=1"),
        std::string("launch.stall_seconds=600")})  // a process that is looked at stands still for most of the time
    settings.push_back(more);
  return settings;
}

/// Trains the world, kills its services at the targets of `choose`, stops the run, and expects the losses and the state
/// of a run of as many steps that nobody disturbs.
inline void expect_kills_change_nothing(
    const KillWorld& world, const std::function<std::vector<KillTarget>(const std::vector<WatchedCell>&)>& choose) {
  std::vector<std::string> settings = settings_of(world);
  TrainingRun run(settings);
  run.start();
  std::vector<WatchedCell> cells;
  for (int rank = 0; rank < world.ranks; ++rank) cells.emplace_back(run.folder(), rank);
  std::vector<KillTarget> targets = choose(cells);
  EXPECT_EQ(strike_all(run, cells, targets), std::vector<std::string>()) << "of " << targets.size();
  EXPECT_EQ(run.ganymede({"ctl", run.folder(), "stop"}).exit_code, 0);
  EXPECT_EQ(run.wait(), 75) << run.output();
  EXPECT_TRUE(run.leftovers().empty());
  settings.push_back(fmt::format("run.steps={}", run.last_step()));
  UndisturbedRun undisturbed(settings);
  undisturbed.seconds = 600;
  undisturbed.expect_same(run);
}

}  // namespace ganymede::test
