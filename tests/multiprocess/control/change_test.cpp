#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <thread>

#include "tests/support/short_run.h"
#include "tests/support/training_run.h"

/// `ganymede ctl RUN set`: a person changes a running job.
namespace ganymede::test {
namespace {

using ::testing::HasSubstr;

constexpr int steps = 150;
constexpr double before = 0.003, after = 0.001;  // optimizer.lr of the recipe, and what it is changed to

std::vector<std::string> settings() { return short_run(2, steps, {"optimizer.schedule=constant"}); }

TrainingRun::Answer set(const TrainingRun& run, std::vector<std::string> changes) {
  changes.insert(changes.begin(), {"ctl", run.folder(), "set"});
  return run.ganymede(changes);
}

/// The first step of the change, as `ctl set` answered, after a look at every line of the metrics.
std::uint64_t step_of_the_change(const TrainingRun& run, const TrainingRun::Answer& answer) {
  EXPECT_EQ(answer.exit_code, 0) << answer.output;
  EXPECT_THAT(answer.output, HasSubstr("on: optimizer.lr 0.003 → 0.001"));
  auto lines = run.metrics();
  EXPECT_EQ(lines.size(), static_cast<std::size_t>(steps));
  std::uint64_t first = 0;
  for (const auto& line : lines) {
    std::uint64_t step = line["step"], change = line["change"];
    if (change == 1 && first == 0) first = step;
    EXPECT_EQ(change, first == 0 ? 0u : 1u) << step;
    bool warm = step > 5;  // the recipe's warm-up
    if (warm) {
      EXPECT_EQ(line["lr"].get<double>(), first == 0 ? before : after) << step;
    }
  }
  EXPECT_THAT(answer.output, HasSubstr("from step " + std::to_string(first) + " on: "));
  return first;
}

/// The same losses and state, bit for bit, as a run that stops before that step and goes on with the other value.
void expect_as_stopped_and_changed(const TrainingRun& run, std::uint64_t step) {
  TrainingRun reference(settings());
  ASSERT_EQ(reference.train({"--steps", std::to_string(step - 1)}), 0) << reference.output();
  ASSERT_EQ(reference.train({"--set", "optimizer.lr=0.001"}), 0) << reference.output();
  EXPECT_EQ(run.losses(), reference.losses());
  EXPECT_EQ(run.state_hash(), reference.state_hash());
}

class ChangeOfARunningJob : public ::testing::TestWithParam<std::string> {};

TEST_P(ChangeOfARunningJob, IsFollowedFromOneStepOnByAllRanksWhateverIsKilledMeanwhile) {
  TrainingRun run(settings());
  run.start();
  run.wait_for_step(8);
  auto status = run.status();
  auto answer = std::async(std::launch::async, [&] { return set(run, {"optimizer.lr=0.001"}); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // it is on its way
  if (GetParam() == "worker") ::kill(status["cells"][1]["services"]["worker"]["pid"].get<int>(), SIGKILL);
  if (GetParam() == "launcher") ::kill(status["launchers"][0]["pid"].get<int>(), SIGKILL);
  EXPECT_EQ(run.wait(), 0) << run.output();
  std::uint64_t step = step_of_the_change(run, answer.get());
  ASSERT_GT(step, 8u);
  expect_as_stopped_and_changed(run, step);
}

INSTANTIATE_TEST_SUITE_P(Control, ChangeOfARunningJob, ::testing::Values("nothing", "worker", "launcher"),
                         [](const auto& tested) { return tested.param; });

TEST(ChangeOfAJob, IsKeptByARunThatGoesOnUnlessTheRecipeSaysSomethingNew) {
  TrainingRun run({"parallel.ranks=2", "run.steps=1000000", "compute.threads=1", "optimizer.schedule=constant"});
  run.start();
  run.wait_for_step(6);
  ASSERT_EQ(set(run, {"optimizer.lr=0.001", "optimizer.adamw.beta1=0.8"}).exit_code, 0);
  EXPECT_EQ(run.status()["changes"]["values"]["optimizer.lr"], 0.001);
  run.signal(SIGTERM);
  ASSERT_EQ(run.wait(), 75) << run.output();

  std::uint64_t stopped = run.last_step();
  ASSERT_EQ(run.train({"--steps", std::to_string(stopped + 2)}), 0) << run.output();
  EXPECT_EQ(run.metrics().back()["lr"].get<double>(), 0.001);
  EXPECT_THAT(run.output(), HasSubstr("optimizer.adamw.beta1 0.9 → 0.8, optimizer.lr 0.003 → 0.001"));

  ASSERT_EQ(run.train({"--steps", std::to_string(stopped + 4), "--set", "optimizer.lr=0.002"}), 0) << run.output();
  EXPECT_EQ(run.metrics().back()["lr"].get<double>(), 0.002);
  EXPECT_THAT(run.output(), HasSubstr("changed since then: optimizer.lr 0.001 → 0.002"));
}

TEST(ChangeOfAJob, ThatCannotBeIsRefusedInOneLineAndTheRunGoesOn) {
  TrainingRun run({"parallel.ranks=2", "run.steps=1000000", "compute.threads=1"});
  run.start();
  run.wait_for_step(3);
  auto refused = [&](const std::string& change, const std::string& why) {
    auto answer = set(run, {change});
    EXPECT_EQ(answer.exit_code, 2) << change;
    EXPECT_THAT(answer.output, HasSubstr(why));
    EXPECT_EQ(std::count(answer.output.begin(), answer.output.end(), '\n'), 1) << answer.output;
  };
  refused("model.hidden=64", "cannot change while the run runs; those that can: optimizer.adamw.beta1");
  refused("optimizer.lr=-1", "key 'optimizer.lr' is -1, but has to be 0 to 1000");
  refused("optimizer.adamw.beta1=1.5", "'optimizer.adamw.beta1' is 1.5");
  refused("optimizer.adamw.beta3=0.5", "beta3");
  refused("optimizer.lr=fast", "that value is no number");
  refused("optimizer.lr", "KEY=VALUE");
  run.wait_for_step(run.last_step() + 3);
  for (const auto& line : run.metrics()) EXPECT_EQ(line["change"], 0);
  run.kill_everything();
  auto answer = set(run, {"optimizer.lr=0.001"});
  EXPECT_EQ(answer.exit_code, 1);
  EXPECT_THAT(answer.output, HasSubstr("No job runs in"));
}

}  // namespace
}  // namespace ganymede::test
