#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "tests/support/process_wait.h"
#include "tests/support/training_run.h"

/// Any process may be killed while a run goes; the curve stays that of an undisturbed run, bit for bit.
namespace ganymede::test {
namespace {

std::vector<std::string> settings() {
  return {"parallel.ranks=2", "run.steps=60", "checkpoint.every_steps=20", "compute.threads=1"};
}

const TrainingRun& undisturbed() {
  static TrainingRun run(settings());
  static int code = run.train();
  EXPECT_EQ(code, 0);
  return run;
}

void expect_as_undisturbed(const TrainingRun& run) {
  EXPECT_EQ(run.losses(), undisturbed().losses());
  EXPECT_EQ(run.state_hash(), undisturbed().state_hash());
}

class KilledService : public ::testing::TestWithParam<std::string> {};

TEST_P(KilledService, ComesBackWithoutAChangeOfTheResult) {
  TrainingRun run(settings());
  run.start();
  run.wait_for_step(8);
  ::kill(run.pid_of(GetParam(), 1), SIGKILL);
  run.wait_for_step(30);
  ::kill(run.pid_of(GetParam(), 0), SIGKILL);
  EXPECT_EQ(run.wait(), 0);
  EXPECT_THAT(run.output(), ::testing::HasSubstr("it is started again"));
  expect_as_undisturbed(run);
  EXPECT_TRUE(run.leftovers().empty());
}

INSTANTIATE_TEST_SUITE_P(Recovery, KilledService, ::testing::Values("worker", "optimizer", "data", "checkpoint"),
                         [](const auto& tested) { return tested.param; });

TEST(Recovery, KilledLauncherIsReplacedAndTheRunGoesOnFromMemory) {
  TrainingRun run(settings());
  run.start();
  run.wait_for_step(10);
  ::kill(run.status()["launchers"][0]["pid"].get<int>(), SIGKILL);
  EXPECT_EQ(run.wait(), 0);
  EXPECT_THAT(run.output(), ::testing::Not(::testing::HasSubstr("going on from the checkpoint")));
  expect_as_undisturbed(run);
}

TEST(Recovery, StoppedWorkerIsKilledAndReplaced) {
  auto with_timeout = settings();
  with_timeout.push_back("launch.heartbeat_timeout_seconds=3");
  TrainingRun run(with_timeout);
  run.start();
  run.wait_for_step(10);
  ::kill(run.pid_of("worker", 1), SIGSTOP);
  EXPECT_EQ(run.wait(), 0);
  EXPECT_THAT(run.output(), ::testing::HasSubstr("no sign of life"));
  expect_as_undisturbed(run);
}

TEST(Recovery, TwoWorkersAtOnceComeBack) {
  TrainingRun run(settings());
  run.start();
  run.wait_for_step(10);
  auto status = run.status();
  for (int rank : {0, 1})
    ::kill(status["cells"][static_cast<std::size_t>(rank)]["services"]["worker"]["pid"].get<int>(), SIGKILL);
  EXPECT_EQ(run.wait(), 0);
  expect_as_undisturbed(run);
}

}  // namespace
}  // namespace ganymede::test
