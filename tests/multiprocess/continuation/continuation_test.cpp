#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>

#include "tests/support/process_wait.h"
#include "tests/support/undisturbed_run.h"

/// A run that was stopped goes on as if it had not been.
namespace ganymede::test {
namespace {

using ::testing::HasSubstr;

constexpr int steps = 40;

std::vector<std::string> settings() { return UndisturbedRun::settings(steps, 10); }

void expect_as_undisturbed(const TrainingRun& run) {
  static UndisturbedRun undisturbed(steps, 10);
  undisturbed.expect_same(run);
}

void expect_nothing_left(const TrainingRun& run) {
  wait_until([&] { return run.leftovers().empty(); }, 5, "no process is left");
}

/// A longer run leaves its decay and decays again.
TEST(Continuation, DecayOfWsdEndsWithTheStepsThatAreAskedFor) {
  TrainingRun run({"parallel.ranks=1", "run.steps=60", "optimizer.schedule=wsd", "optimizer.decay_steps=0"});
  auto rate = [&](std::size_t step) { return run.metrics().at(step - 1)["lr"].get<double>(); };
  ASSERT_EQ(run.train({"--steps", "20"}), 0) << run.output();
  EXPECT_GT(rate(18), rate(19));
  EXPECT_GT(rate(19), rate(20));
  EXPECT_EQ(rate(18), rate(10)) << "a tenth of the steps";
  ASSERT_EQ(run.train({"--steps", "40"}), 0) << run.output();
  EXPECT_EQ(rate(36), rate(10));
  EXPECT_LT(rate(40), rate(36) / 2);
  EXPECT_THAT(run.output(), testing::Not(testing::HasSubstr("changed since then")));
}

TEST(Continuation, InterruptStopsAfterAStepWithACheckpointAndTheSameCommandGoesOn) {
  TrainingRun run(settings());
  run.start();
  run.wait_for_step(5);
  run.signal(SIGINT);
  EXPECT_EQ(run.wait(), 75);
  expect_nothing_left(run);
  std::uint64_t stopped = run.last_step();
  EXPECT_LT(stopped, std::uint64_t{steps});
  EXPECT_THAT(run.output(), HasSubstr("go on with: "));
  EXPECT_THAT(run.ganymede({"ctl", run.folder(), "status"}).output,
              HasSubstr("stopped at step " + std::to_string(stopped)));
  EXPECT_EQ(run.train(), 0);
  EXPECT_THAT(run.output(), HasSubstr("going on from the checkpoint of step " + std::to_string(stopped)));
  expect_as_undisturbed(run);
}

TEST(Continuation, TerminationSignalIsLikeAnInterrupt) {
  TrainingRun run(settings());
  run.start();
  run.wait_for_step(3);
  run.signal(SIGTERM);
  EXPECT_EQ(run.wait(), 75);
  EXPECT_EQ(run.train(), 0);
  expect_as_undisturbed(run);
}

TEST(Continuation, StopByCommandIsLikeAnInterrupt) {
  TrainingRun run(settings());
  run.start();
  run.wait_for_step(3);
  EXPECT_EQ(run.ganymede({"ctl", run.folder(), "stop"}).exit_code, 0);
  EXPECT_EQ(run.wait(), 75);
  EXPECT_EQ(run.train(), 0);
  expect_as_undisturbed(run);
}

TEST(Continuation, AfterKillOfEverythingTheRunGoesOnFromItsLastCheckpoint) {
  TrainingRun run(settings());
  run.start();
  run.wait_for_step(20);
  // The checkpoint of step 10 is complete long before: but a disk may be slow.
  wait_until([&] { return std::filesystem::exists(run.folder() + "/checkpoint/manifest.000000000010.json"); }, 60,
             "the first checkpoint");
  run.kill_everything();
  EXPECT_EQ(run.train(), 0);
  EXPECT_THAT(run.output(), HasSubstr("going on from the checkpoint of step"));
  expect_as_undisturbed(run);
}

TEST(Continuation, KillBeforeTheFirstCheckpointBeginsAgain) {
  TrainingRun run(settings());
  run.start();
  run.wait_for_step(2);
  run.kill_everything();
  EXPECT_EQ(run.train(), 0);
  expect_as_undisturbed(run);
}

TEST(Continuation, FinishedRunHasNothingToDoUntilItGetsMoreSteps) {
  TrainingRun run({"parallel.ranks=1", "run.steps=4", "optimizer.decay_steps=100"});
  ASSERT_EQ(run.train(), 0);
  EXPECT_EQ(run.train(), 0);
  EXPECT_THAT(run.output(), HasSubstr("has its 4 steps"));
  EXPECT_EQ(run.train({"--steps", "6"}), 0);
  EXPECT_EQ(run.last_step(), 6u);
  EXPECT_EQ(run.metrics().size(), 6u);
}

TEST(Continuation, WorldOfAnotherSizeReadsTheCheckpoint) {
  TrainingRun run({"run.steps=12", "compute.threads=1"}), straight({"run.steps=12", "compute.threads=1"});
  ASSERT_EQ(run.train({"--set", "parallel.ranks=1", "--set", "optimizer.decay_steps=12", "--steps", "6"}), 0);
  ASSERT_EQ(run.train({"--set", "parallel.ranks=3", "--set", "optimizer.decay_steps=12"}), 0);
  ASSERT_EQ(straight.train({"--set", "parallel.ranks=1", "--set", "optimizer.decay_steps=12"}), 0);
  auto mixed = run.losses(), plain = straight.losses();
  ASSERT_EQ(mixed.size(), plain.size());
  for (std::size_t i = 0; i < plain.size(); ++i) EXPECT_NEAR(mixed[i], plain[i], 1e-6 * plain[i]) << "step " << i + 1;
}

TEST(Continuation, NewRunStartsFromAnotherRunsCheckpoint) {
  TrainingRun first({"run.steps=6", "optimizer.decay_steps=12", "compute.threads=1"});
  TrainingRun second({"run.steps=12", "optimizer.decay_steps=12", "compute.threads=1"});
  TrainingRun straight({"run.steps=12", "optimizer.decay_steps=12", "compute.threads=1"});
  ASSERT_EQ(first.train(), 0);
  ASSERT_EQ(second.train({"--from", first.folder()}), 0);
  ASSERT_EQ(straight.train(), 0);
  EXPECT_EQ(second.state_hash(), straight.state_hash());
}

TEST(Continuation, WhatMayNotChangeIsRefusedWithKeyAndBothValues) {
  TrainingRun run({"run.steps=2"});
  ASSERT_EQ(run.train(), 0);
  std::string hash = run.state_hash();
  EXPECT_EQ(run.train({"--set", "model.hidden=64", "--steps", "4"}), 2);
  for (const char* part : {"model.hidden", "64", "48"}) EXPECT_THAT(run.output(), HasSubstr(part));
  EXPECT_EQ(run.train({"--set", "run.seed=5", "--steps", "4"}), 2);
  EXPECT_EQ(run.state_hash(), hash);
  EXPECT_EQ(run.train({"--steps", "4", "--set", "checkpoint.every_steps=1", "--set", "validation.every_steps=2"}), 0);
}

}  // namespace
}  // namespace ganymede::test
