#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "common/os/files.h"
#include "tests/multiprocess/swap/swapped_run.h"
#include "tests/support/network/nodes_run.h"
#include "tests/support/process_wait.h"
#include "tests/support/short_run.h"
#include "tests/support/tree.h"

/// `ganymede ctl RUN swap-optimizer`: a running job goes over to another optimizer.
namespace ganymede::test {
namespace {

using ::testing::HasSubstr;

std::vector<std::string> settings(int ranks, int steps) {
  return short_run(ranks, steps,
                   {"optimizer.schedule=constant", "optimizer.adamw.beta2=0.95", "launch.restart_budget=100000"});
}

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
  TrainingRun undisturbed(settings(4, steps)), run(settings(4, steps));
  ASSERT_EQ(undisturbed.train({}, 240), 0) << undisturbed.output();
  run.start();
  run.wait_for_step(60);
  auto there = swap(run, {"muon", "--set", "lr=0.02", "--set", "warm_steps=20"});
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
    static TrainingRun run(settings(4, steps));
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
  TrainingRun run(settings(4, steps));
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
  TrainingRun undisturbed(settings(4, steps)), run(settings(4, steps));
  run.start();
  run.wait_for_step(5);
  auto ordered = swap(run, {"muon", "--set", "lr=0.02", "--set", "warm_steps=250", "--wait", "0"});
  EXPECT_THAT(ordered.output, HasSubstr("is not in force after"));
  kill_standbys(run.folder(), 2, [&] { return run.output(); });
  ASSERT_EQ(run.wait(240), 0) << run.output();
  EXPECT_THAT(run.output(), HasSubstr("adamw → muon was refused by rank 2"));
  EXPECT_EQ(first_step_of_epoch(run, 1), 0u);
  ASSERT_EQ(undisturbed.train({}, 240), 0) << undisturbed.output();
  EXPECT_EQ(run.losses(), undisturbed.losses());
  EXPECT_EQ(run.state_hash(), undisturbed.state_hash());
}

std::vector<std::string> on_two_nodes(int steps) {
  auto all = settings(2, steps);
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
  TrainingRun undisturbed(settings(2, steps));
  NodesRun run(2, on_two_nodes(steps));
  run.start();
  run.first().wait_for_step(5, 150);
  auto ordered = swap(run.first(), {"muon", "--set", "lr=0.02", "--set", "warm_steps=150", "--wait", "0"});
  EXPECT_THAT(ordered.output, HasSubstr("is not in force after"));
  kill_standbys(run.folder(1), 1, [&] { return run.output(0); });
  EXPECT_THAT(run.wait(240), ::testing::Each(0)) << run.output(0) << run.output(1);
  EXPECT_THAT(run.output(0), HasSubstr("adamw → muon was refused by rank 1"));
  ASSERT_EQ(undisturbed.train({}, 240), 0) << undisturbed.output();
  EXPECT_EQ(run.first().losses(), undisturbed.losses());
  EXPECT_EQ(run.first().state_hash(), undisturbed.state_hash());
}

/// The built-in plugins and faulty ones in one folder.
std::string plugin_folder(const TemporaryFolder& folder) {
  for (const std::string& from : {std::string(GANYMEDE_BINARY_DIR) + "/plugins", std::string(FAULTY_PLUGINS)})
    for (const auto& entry : std::filesystem::directory_iterator(from))
      std::filesystem::copy_file(entry.path(), folder.path() + "/" + entry.path().filename().string());
  return folder.path();
}

TEST(Swap, ThatCannotBeIsRefusedInOneLineAndTheRunGoesOn) {
  TemporaryFolder folder;
  auto all = settings(2, 1000000);
  all.push_back("optimizer.plugin_folder=" + plugin_folder(folder));
  TrainingRun run(all);
  run.start();
  run.wait_for_step(3);
  auto refused = [&](const std::vector<std::string>& wish, int exit_code, const std::string& why) {
    auto answer = swap(run, wish);
    EXPECT_EQ(answer.exit_code, exit_code) << answer.output;
    EXPECT_THAT(answer.output, HasSubstr(why));
    EXPECT_EQ(std::count(answer.output.begin(), answer.output.end(), '\n'), 1) << answer.output;
  };
  refused({"nobody"}, 2, "nobody");
  refused({"other_abi"}, 1, "ABI");
  refused({"muon", "--set", "momentun=0.9"}, 2, "momentun");
  refused({"muon", "--set", "optimizer.threads=2"}, 2, "cannot change by a swap");
  refused({"lion", "--set", "lr=-1"}, 2, "has to be 0 to 1000");
  refused({"muon", "--set", "warm_steps=9999999"}, 2, "fewer with --set swap.warm_steps");
  refused({"crash", "--set", "warm_steps=0"}, 2, "--force");
  refused({"crash"}, 1, "was refused by rank");
  EXPECT_EQ(run.status()["optimizer"], "adamw");
  run.wait_for_step(run.last_step() + 3);
  for (const auto& line : run.metrics()) EXPECT_EQ(line["state_epoch"], 0);
  wait_until([&] { return !run.status().contains("swap"); }, 60, "all of the refused swap is taken back");
  auto again = swap(run, {"sgd", "--force", "--set", "warm_steps=0"});
  EXPECT_EQ(again.exit_code, 0) << again.output;
}

TEST(Swap, OfADryRunSaysWhatItWouldTakeAndChangesNothing) {
  TrainingRun run(settings(2, 1000000));
  run.start();
  run.wait_for_step(3);
  std::string before = os::read_file(run.folder() + "/job.json");
  auto answer = swap(run, {"muon", "--dry-run", "--json"});
  ASSERT_EQ(answer.exit_code, 0) << answer.output;
  auto told = nlohmann::json::parse(answer.output);
  EXPECT_EQ(told["state"], "possible");
  EXPECT_GT(told["memory"]["needed_per_cell"], 0);
  EXPECT_GT(told["from_step"], 3);
  ASSERT_EQ(told["parts"].size(), 2u);
  for (const auto& part : told["parts"]) EXPECT_EQ(part["from"], "adamw");
  EXPECT_EQ(os::read_file(run.folder() + "/job.json"), before);
  EXPECT_THAT(swap(run, {"muon", "--dry-run"}).output, HasSubstr("nothing was changed"));
}

TEST(Swap, IsKeptByARunThatGoesOn) {
  TrainingRun run(settings(2, 1000000));
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
}

}  // namespace
}  // namespace ganymede::test
