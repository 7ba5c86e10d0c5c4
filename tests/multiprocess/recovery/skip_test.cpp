#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>

#include "tests/support/process_wait.h"
#include "tests/support/training_run.h"

/// Steps that are not applied: the state is that of before, and whoever is killed meanwhile, the same ones are skipped.
namespace ganymede::test {
namespace {

using ::testing::HasSubstr;

/// Limits so tight that steps of an ordinary run are outlying.
std::vector<std::string> settings() {
  return {"parallel.ranks=2",
          "run.steps=60",
          "compute.threads=1",
          "checkpoint.every_steps=20",
          "validation.every_steps=0",
          "optimizer.schedule=constant",
          "optimizer.policy=skip_outliers",
          "optimizer.outlier_z=1",
          "optimizer.outlier_window=8",
          "optimizer.stop_after_skips=0"};
}

/// By step: "" where it was applied.
std::vector<std::string> skips(const TrainingRun& run) {
  std::vector<std::string> reasons;
  for (const auto& line : run.metrics()) reasons.push_back(line.value("skip_reason", ""));
  return reasons;
}

const TrainingRun& undisturbed() {
  static TrainingRun run(settings());
  static bool trained = [] {
    EXPECT_EQ(run.train(), 0) << run.output();
    return true;
  }();
  (void)trained;
  return run;
}

void expect_as_undisturbed(const TrainingRun& run) {
  EXPECT_EQ(skips(run), skips(undisturbed()));
  EXPECT_EQ(run.losses(), undisturbed().losses());
  EXPECT_EQ(run.state_hash(), undisturbed().state_hash());
  EXPECT_EQ(run.metrics().back()["skipped_steps"], undisturbed().metrics().back()["skipped_steps"]);
}

TEST(SkippedOutlier, IsCountedByReasonAndSaidOnce) {
  std::vector<std::string> reasons = skips(undisturbed());
  auto losses = std::count(reasons.begin(), reasons.end(), "loss");
  auto norms = std::count(reasons.begin(), reasons.end(), "grad_norm");
  EXPECT_GT(losses + norms, 2);
  EXPECT_LT(losses + norms, 40) << "most are applied";
  nlohmann::json last = undisturbed().metrics().back();
  EXPECT_EQ(last["skipped_loss"], losses);
  EXPECT_EQ(last["skipped_grad_norm"], norms);
  EXPECT_EQ(last["skipped_non_finite"], 0);
  std::string said = undisturbed().output();
  for (std::size_t i = 0; i < reasons.size(); ++i) {
    std::string line = "step " + std::to_string(i + 1) + " is skipped: its ";
    EXPECT_EQ(said.find(line) != std::string::npos, !reasons[i].empty()) << line;
    EXPECT_EQ(said.find(line), said.rfind(line)) << line;
  }
}

/// The run that stops before it and goes on with it alone knows from its checkpoint what the steps before were like.
TEST(SkippedOutlier, LeavesTheStateOfBefore) {
  std::vector<std::string> reasons = skips(undisturbed());
  auto skipped = std::find_if(reasons.begin() + 10, reasons.end(), [](auto& reason) { return !reason.empty(); });
  ASSERT_NE(skipped, reasons.end());
  auto step = skipped - reasons.begin() + 1;
  TrainingRun run(settings());
  ASSERT_EQ(run.train({"--steps", std::to_string(step - 1)}), 0) << run.output();
  std::string before = run.state_hash();
  ASSERT_EQ(run.train({"--steps", std::to_string(step)}), 0) << run.output();
  EXPECT_EQ(run.metrics().back()["skip_reason"], *skipped);
  EXPECT_EQ(run.state_hash(), before);
  ASSERT_EQ(run.train({"--steps", "60"}), 0) << run.output();
  EXPECT_NE(run.state_hash(), before);
  expect_as_undisturbed(run);
}

TEST(SkippedOutlier, IsTheSameOneAfterKillsOfWorkers) {
  TrainingRun run(settings());
  run.start();
  run.wait_for_step(9);
  ::kill(run.pid_of("worker", 1), SIGKILL);
  run.wait_for_step(25);
  auto status = run.status();
  for (std::size_t rank : {0u, 1u}) ::kill(status["cells"][rank]["services"]["worker"]["pid"].get<int>(), SIGKILL);
  EXPECT_EQ(run.wait(), 0) << run.output();
  expect_as_undisturbed(run);
}

TEST(SkippedOutlier, IsTheSameOneAfterAKillOfEverything) {
  TrainingRun run(settings());
  run.start();
  wait_until([&] { return std::filesystem::exists(run.folder() + "/checkpoint/manifest.000000000020.json"); }, 60,
             "the first checkpoint");
  run.kill_everything();
  EXPECT_EQ(run.train(), 0) << run.output();
  EXPECT_THAT(run.output(), HasSubstr("going on from the checkpoint of step"));
  expect_as_undisturbed(run);
}

TEST(PolicyStop, EndsTheRunWithTheStateBeforeTheFirstStepThatIsNotFinite) {
  std::vector<std::string> diverging = {"parallel.ranks=2",         "run.steps=60",
                                        "compute.threads=1",        "validation.every_steps=0",
                                        "checkpoint.every_steps=0", "optimizer.schedule=constant",
                                        "optimizer.lr=1000",        "optimizer.clip_norm=0",
                                        "optimizer.warmup_steps=0", "optimizer.policy=stop"};
  TrainingRun run(diverging), before(diverging);
  ASSERT_EQ(run.train(), 1) << run.output();
  std::uint64_t step = run.last_step();
  ASSERT_GT(step, 1u);
  EXPECT_THAT(run.output(), HasSubstr("The loss or gradients of step " + std::to_string(step) + " were not finite"));
  EXPECT_EQ(run.metrics().back()["skip_reason"], "non_finite");
  ASSERT_EQ(before.train({"--steps", std::to_string(step - 1)}), 0) << before.output();
  EXPECT_EQ(run.state_hash(), before.state_hash());
}

}  // namespace
}  // namespace ganymede::test
