#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <random>
#include <thread>

#include "tests/support/undisturbed_run.h"

/// Of preset `full`: minutes.
namespace ganymede::test {
namespace {

constexpr int kills = 200;
constexpr int steps = 10 * kills;     // twice as many as go by meanwhile
constexpr int longest_pause = 60000;  // microseconds: about two steps of this model

std::vector<std::string> settings(const std::string& optimizer) {
  std::vector<std::string> all = UndisturbedRun::settings(steps, 100);
  // With a short window each death is soon forgotten: no replacement waits for long.
  for (const char* more :
       {"launch.restart_budget=100000", "launch.restart_window_seconds=1", "validation.every_steps=0"})
    all.emplace_back(more);
  if (optimizer == "muon")
    for (const char* more : {"optimizer.name=muon", "optimizer.lr=0.02", "optimizer.group.rest.lr=3e-3"})
      all.emplace_back(more);
  return all;
}

class RandomKills : public ::testing::TestWithParam<std::string> {};

/// kill -9 of one rank's optimizer server at random moments of its steps; each successor gets into one of its own.
TEST_P(RandomKills, OfOptimizerServersChangeNoBit) {
  TrainingRun run(settings(GetParam()));
  run.start();
  run.wait_for_step(2);
  std::mt19937 random(23);
  for (int i = 0; i < kills; ++i) {
    std::this_thread::sleep_for(std::chrono::microseconds(random() % longest_pause));
    int pid = run.pid_of("optimizer", static_cast<int>(random() % 2));
    ASSERT_GT(pid, 0) << "kill " << i;
    ASSERT_EQ(::kill(pid, SIGKILL), 0) << "kill " << i;
    std::uint64_t step = run.last_step();
    ASSERT_LT(step + 2, static_cast<std::uint64_t>(steps)) << "the run is too short for kill " << i;
    run.wait_for_step(step + 2);
  }
  EXPECT_EQ(run.wait(), 0) << run.output();
  UndisturbedRun(settings(GetParam())).expect_same(run);
}

INSTANTIATE_TEST_SUITE_P(Optimizers, RandomKills, ::testing::Values("adamw", "muon"),
                         [](const auto& tested) { return tested.param; });

}  // namespace
}  // namespace ganymede::test
