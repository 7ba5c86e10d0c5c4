#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <numeric>

#include "tests/multiprocess/swap/swapped_run.h"
#include "tests/support/network/nodes_run.h"

/// `ganymede ctl RUN swap-optimizer`: a running job goes over to another optimizer.
namespace ganymede::test {
namespace {

using ::testing::HasSubstr;

double mean(const std::vector<double>& losses, std::uint64_t first, std::uint64_t count) {
  auto begin = losses.begin() + static_cast<std::ptrdiff_t>(first - 1);
  return std::accumulate(begin, begin + static_cast<std::ptrdiff_t>(count), 0.0) / static_cast<double>(count);
}

void expect_each_step_once(const TrainingRun& run, int steps) {
  auto lines = run.metrics();
  ASSERT_EQ(lines.size(), static_cast<std::size_t>(steps));
  for (std::size_t i = 0; i < lines.size(); ++i) EXPECT_EQ(lines[i]["step"], i + 1);
}

TEST(Swap, ToMuonAndBackLosesNoStepAndTheLossHasNoBump) {
  constexpr int steps = 400, counted = 20;
  TrainingRun undisturbed(swap_settings(4, steps)), run(swap_settings(4, steps));
  ASSERT_EQ(undisturbed.train({}, 240), 0) << undisturbed.output();
  run.start();
  run.wait_for_step(60);
  auto there = swap(run, {"muon", "--set", "lr=0.01", "--set", "warm_steps=20"});
  EXPECT_EQ(there.exit_code, 0) << there.output;
  EXPECT_THAT(there.output, HasSubstr("on: optimizer adamw → muon"));
  run.wait_for_step(first_step_of_epoch(run, 1) + counted);
  auto back = swap(run, {"adamw", "--set", "lr=0.003"});
  EXPECT_EQ(back.exit_code, 0) << back.output;
  EXPECT_THAT(back.output, HasSubstr("on: optimizer muon → adamw"));
  ASSERT_EQ(run.wait(240), 0) << run.output();
  expect_each_step_once(run, steps);
  for (const auto& line : run.metrics()) EXPECT_EQ(line["generation"], 1);
  for (int epoch : {1, 2}) {
    std::uint64_t first = first_step_of_epoch(run, epoch);
    ASSERT_GT(first, 60u);
    ASSERT_LE(first + counted, static_cast<std::uint64_t>(steps)) << "the machine was too slow for this test";
    double ours = mean(run.losses(), first, counted), theirs = mean(undisturbed.losses(), first, counted);
    EXPECT_LE(ours, 1.01 * theirs) << "state epoch " << epoch << " from step " << first;
  }
}

/// Its means of rows begin with the first step in force: nothing is to be warmed up, and nothing has to be forced.
TEST(Swap, FromMuonToNormuonTakesTheMomentumOverAtOnce) {
  constexpr int steps = 120;
  auto muon = swap_settings(2, steps);
  for (const char* more : {"optimizer.name=muon", "optimizer.lr=0.02", "optimizer.group.rest.lr=3e-3"})
    muon.emplace_back(more);
  TrainingRun run(muon);
  run.start();
  run.wait_for_step(20);
  auto there = swap(run, {"normuon", "--set", "lr=0.01"});
  EXPECT_EQ(there.exit_code, 0) << there.output;
  EXPECT_THAT(there.output, HasSubstr("on: optimizer muon → normuon"));
  ASSERT_EQ(run.wait(240), 0) << run.output();
  expect_each_step_once(run, steps);
  std::uint64_t first = first_step_of_epoch(run, 1);
  ASSERT_GT(first, 20u);
  ASSERT_LE(first + 10, static_cast<std::uint64_t>(steps)) << "the machine was too slow for this test";
  EXPECT_LE(mean(run.losses(), first, 10), mean(run.losses(), first - 10, 10));
}

/// The swap from step 11 on, with its takeover 13 steps later.
struct Disturbance {
  std::string name, victim;
  std::uint64_t after;  // step
};

class KillDuringASwap : public ::testing::TestWithParam<Disturbance> {
 protected:
  static constexpr int begin = 10, steps = 40;
  static std::vector<std::string> wish() { return {"muon", "--set", "lr=0.02", "--set", "warm_steps=12"}; }

  static void finish(TrainingRun& run) {
    ASSERT_EQ(run.wait(240), 0) << run.output();
    expect_each_step_once(run, steps);
    EXPECT_EQ(first_step_of_epoch(run, 1), static_cast<std::uint64_t>(begin) + 14);
  }
  static TrainingRun& undisturbed() {
    static TrainingRun run(swap_settings(4, steps));
    static bool trained = [] {
      begin_swap_at(run, begin, wish());
      finish(run);
      return true;
    }();
    EXPECT_TRUE(trained);
    return run;
  }
};

TEST_P(KillDuringASwap, ChangesNoBit) {
  TrainingRun run(swap_settings(4, steps));
  begin_swap_at(run, begin, wish());
  run.wait_for_step(GetParam().after);
  int pid = GetParam().victim == "standby"    ? standby_of(run.folder(), 1)
            : GetParam().victim == "launcher" ? run.status()["launchers"][0]["pid"].get<int>()
                                              : run.pid_of(GetParam().victim, 1);
  if (pid > 0) ::kill(pid, SIGKILL);
  finish(run);
  EXPECT_EQ(run.losses(), undisturbed().losses());
  EXPECT_EQ(run.state_hash(), undisturbed().state_hash());
}

INSTANTIATE_TEST_SUITE_P(Swap, KillDuringASwap,
                         ::testing::Values(Disturbance{"standby_early", "standby", 10},
                                           Disturbance{"standby", "standby", 16},
                                           Disturbance{"server", "optimizer", 15}, Disturbance{"worker", "worker", 14},
                                           Disturbance{"launcher", "launcher", 15},
                                           Disturbance{"worker_at_takeover", "worker", 23},
                                           Disturbance{"server_at_takeover", "optimizer", 23},
                                           Disturbance{"launcher_at_takeover", "launcher", 23}),
                         [](const auto& tested) { return tested.param.name; });

/// One cell of four cannot follow: the run ends with the bits of one that nobody asked.
TEST(Swap, ThatOneCellCannotFollowChangesNothing) {
  constexpr int steps = 300;
  TrainingRun undisturbed(swap_settings(4, steps)), run(swap_settings(4, steps));
  run.start();
  run.wait_for_step(5);
  auto ordered = swap(run, {"muon", "--set", "lr=0.02", "--set", "warm_steps=250", "--wait", "0"});
  EXPECT_THAT(ordered.output, HasSubstr("ordered: "));
  kill_standbys(run.folder(), 2, [&] { return run.output(); });
  ASSERT_EQ(run.wait(240), 0) << run.output();
  EXPECT_THAT(run.output(), HasSubstr("adamw → muon was refused by rank 2"));
  EXPECT_EQ(first_step_of_epoch(run, 1), 0u);
  ASSERT_EQ(undisturbed.train({}, 240), 0) << undisturbed.output();
  EXPECT_EQ(run.losses(), undisturbed.losses());
  EXPECT_EQ(run.state_hash(), undisturbed.state_hash());
}

std::vector<std::string> on_two_nodes(int steps) {
  auto all = swap_settings(2, steps);
  all.emplace_back("topology.ranks_per_node=1");
  return all;
}

TEST(Swap, GoesOverAllNodesOfARun) {
  constexpr int steps = 200;
  NodesRun run(2, on_two_nodes(steps));
  run.start();
  run.first().wait_for_step(5, 150);
  auto answer = swap(run.first(), {"muon", "--set", "lr=0.02", "--set", "warm_steps=10"});
  EXPECT_EQ(answer.exit_code, 0) << answer.output;
  EXPECT_THAT(run.wait(240), ::testing::Each(0)) << run.output(0) << run.output(1);
  expect_each_step_once(run.first(), steps);
  EXPECT_GT(first_step_of_epoch(run.first(), 1), 5u);
}

TEST(Swap, ThatACellOfAnotherNodeCannotFollowChangesNothing) {
  constexpr int steps = 200;
  TrainingRun undisturbed(swap_settings(2, steps));
  NodesRun run(2, on_two_nodes(steps));
  run.start();
  run.first().wait_for_step(5, 150);
  auto ordered = swap(run.first(), {"muon", "--set", "lr=0.02", "--set", "warm_steps=150", "--wait", "0"});
  EXPECT_THAT(ordered.output, HasSubstr("ordered: "));
  kill_standbys(run.folder(1), 1, [&] { return run.output(0); });
  EXPECT_THAT(run.wait(240), ::testing::Each(0)) << run.output(0) << run.output(1);
  EXPECT_THAT(run.output(0), HasSubstr("adamw → muon was refused by rank 1"));
  ASSERT_EQ(undisturbed.train({}, 240), 0) << undisturbed.output();
  EXPECT_EQ(run.first().losses(), undisturbed.losses());
  EXPECT_EQ(run.first().state_hash(), undisturbed.state_hash());
}

TEST(Swap, IsKeptByARunThatGoesOn) {
  TrainingRun run(swap_settings(2, 1000000));
  run.start();
  run.wait_for_step(5);
  ASSERT_EQ(swap(run, {"lion", "--set", "lr=0.0005"}).exit_code, 0) << run.output();
  run.wait_for_step(run.last_step() + 2);
  run.signal(SIGTERM);
  ASSERT_EQ(run.wait(), 75) << run.output();
  std::uint64_t stopped = run.last_step();
  ASSERT_EQ(run.train({"--steps", std::to_string(stopped + 3)}), 0) << run.output();
  EXPECT_THAT(run.output(), HasSubstr("kept from `ganymede ctl swap-optimizer`: optimizer adamw → lion"));
  EXPECT_EQ(run.metrics().back()["optimizer"], "lion");
  EXPECT_EQ(run.metrics().back()["lr"].get<double>(), 0.0005);
  // The recipe's value, said anew.
  ASSERT_EQ(run.train({"--steps", std::to_string(stopped + 5), "--set", "optimizer.lr=0.003"}), 0) << run.output();
  EXPECT_EQ(run.metrics().back()["optimizer"], "lion");
  EXPECT_EQ(run.metrics().back()["lr"].get<double>(), 0.003);
}

}  // namespace
}  // namespace ganymede::test
