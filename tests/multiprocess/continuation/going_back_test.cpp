#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/support/process_wait.h"
#include "tests/support/training_run.h"

/// Past a loss spike: batches that are left out (run.skip_steps), and going back in a run (--from STEP).
namespace ganymede::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* listed = "run.skip_steps=[\"12-14\"]";

std::vector<std::string> settings(int steps = 30) {
  return {"parallel.ranks=2",         "run.steps=" + std::to_string(steps),
          "optimizer.decay_steps=30", "checkpoint.every_steps=5",
          "checkpoint.keep_last=20",  "compute.threads=1",
          "validation.every_steps=0"};
}

/// Trains up to each of these steps and ends there, so that there is a checkpoint of it: one that falls due while the
/// one before is written is left out.
void train_to(TrainingRun& run, const std::vector<int>& ends, const std::vector<std::string>& arguments = {}) {
  for (int end : ends) {
    std::vector<std::string> all = arguments;
    all.insert(all.end(), {"--steps", std::to_string(end)});
    ASSERT_EQ(run.train(all), 0) << run.output();
  }
}

/// Of a run that has left out steps 12 to 14 from its beginning.
struct LeftOut {
  std::vector<nlohmann::json> lines;
  std::string hash, before;  // of the state: at the end and of step 10
};

const LeftOut& left_out() {
  static const LeftOut found = [] {
    TrainingRun run(settings());
    train_to(run, {10, 30}, {"--set", listed});
    return LeftOut{run.metrics(), run.state_hash(), run.state_hash(10)};
  }();
  return found;
}

/// Each step once, with these losses, bit for bit.
void expect_as_left_out(const TrainingRun& run) {
  auto lines = run.metrics();
  ASSERT_EQ(lines.size(), left_out().lines.size());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    EXPECT_EQ(lines[i]["step"], i + 1);
    EXPECT_EQ(lines[i]["loss"], left_out().lines[i]["loss"]) << "step " << i + 1;
    EXPECT_EQ(lines[i]["skipped_steps"], left_out().lines[i]["skipped_steps"]) << "step " << i + 1;
  }
  EXPECT_EQ(run.state_hash(), left_out().hash);
}

TEST(SkipSteps, BatchesOfListedStepsAreNotTrainedOn) {
  const auto& lines = left_out().lines;
  ASSERT_EQ(lines.size(), 30u);
  for (std::size_t step = 1; step <= lines.size(); ++step) {
    const nlohmann::json& line = lines[step - 1];
    bool out = step >= 12 && step <= 14;
    EXPECT_EQ(line["skipped"], out) << step;
    EXPECT_EQ(line["loss"].is_null(), out) << step;
    EXPECT_EQ(line["tokens"] == 0, out) << step;
    if (out) {
      EXPECT_EQ(line["skip_reason"], "listed");
    }
  }
  EXPECT_EQ(lines.back()["skipped_listed"], 3);
}

TEST(SkipSteps, NothingChangesInThem) {
  TrainingRun run(settings(14));
  train_to(run, {10, 14}, {"--set", "run.skip_steps=[\"11\", \"12-14\"]"});
  EXPECT_EQ(run.state_hash(14), run.state_hash(10));
  EXPECT_EQ(run.state_hash(10), left_out().before);
  EXPECT_THAT(run.output(), HasSubstr("step 11 is skipped: run.skip_steps"));
  EXPECT_THAT(run.output(), Not(HasSubstr("step 12 is skipped"))) << "of several in a row the first is said";
}

TEST(SkipSteps, KillsOfServicesInThemChangeNothing) {
  TrainingRun run(settings());
  run.start({"--set", "run.skip_steps=[\"12-14\"]"});
  for (std::uint64_t step : {10u, 11u, 12u}) {
    run.wait_for_step(step);
    kill(run.pid_of(step % 2 == 0 ? "worker" : "optimizer", step % 3 == 0 ? 0 : 1), SIGKILL);
  }
  ASSERT_EQ(run.wait(), 0) << run.output();
  expect_as_left_out(run);
}

TEST(GoingBack, PastASpikeWithItsBatchesLeftOutEqualsARunThatNeverSawThem) {
  TrainingRun run(settings());
  train_to(run, {10, 20, 30});
  std::string spiked = run.state_hash();
  EXPECT_NE(spiked, left_out().hash);
  ASSERT_EQ(run.train({"--from", "10", "--set", listed}), 0) << run.output();
  EXPECT_THAT(run.output(), AllOf(HasSubstr("going on from the checkpoint of step 10"), HasSubstr(" 20, "),
                                  HasSubstr(" 30 after that"), HasSubstr("checkpoint/abandoned.1")));
  expect_as_left_out(run);
  std::string kept = run.folder() + "/checkpoint/abandoned.1";
  auto verified = run.ganymede({"checkpoint", "verify", kept, "--step", "30", "--hash", "--json"});
  EXPECT_EQ(verified.exit_code, 0) << verified.output;
  EXPECT_THAT(verified.output, HasSubstr(spiked));
  EXPECT_TRUE(std::filesystem::exists(kept + "/metrics.jsonl"));
}

TEST(GoingBack, StepWithoutACheckpointChangesNothing) {
  TrainingRun run(settings(10));
  train_to(run, {5, 10});
  std::string before = run.state_hash();
  EXPECT_EQ(run.train({"--from", "7"}), 2);
  EXPECT_THAT(run.output(), HasSubstr("it can go back to 5, 10."));
  EXPECT_EQ(run.train({"--from", "10"}), 2);
  EXPECT_THAT(run.output(), HasSubstr("so there is nothing to do behind it"));
  EXPECT_EQ(run.train({"--from", "5", "--set", "data.rows_per_step=24"}), 2) << "the recipe does not fit";
  EXPECT_EQ(run.state_hash(), before);
  EXPECT_EQ(run.metrics().size(), 10u);
  EXPECT_FALSE(std::filesystem::exists(run.folder() + "/checkpoint/abandoned.1"));
}

/// Changes one bit in the head of a segment that the keeper holds.
void damage(int keeper, const std::string& segment) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/" + std::to_string(keeper) + "/fd")) {
    std::error_code gone;
    if (std::filesystem::read_symlink(entry.path(), gone).string().find(segment) == std::string::npos) continue;
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(20);
    char byte = static_cast<char>(file.get() ^ 1);
    file.seekp(20);
    file.put(byte);
    ASSERT_TRUE(file.flush().good());
    return;
  }
  FAIL() << "the keeper holds no " << segment;
}

int newest_checkpoint(const TrainingRun& run) {
  auto list = nlohmann::json::parse(run.ganymede({"checkpoint", "list", run.folder(), "--json"}).output);
  int newest = 0;
  for (const auto& one : list)
    if (one["complete"].get<bool>()) newest = std::max(newest, one["step"].get<int>());
  return newest;
}

TEST(GoingBack, LauncherThatFindsSegmentsDamagedGoesOnFromTheLastCheckpointAndNotBackAgain) {
  TrainingRun run(settings(150)), straight(settings(150));
  ASSERT_EQ(straight.train({"--set", listed}), 0) << straight.output();
  train_to(run, {10, 20});
  run.start({"--from", "10", "--set", listed});
  wait_until([&] { return run.output().find("going back to step 10") != std::string::npos; }, 60, "going back");
  wait_until([&] { return newest_checkpoint(run) > 10; }, 60, "a checkpoint of what came after it");
  nlohmann::json status = run.status(), launcher = status["launchers"][0];
  ASSERT_EQ(status["state"], "training") << status << run.output();
  damage(launcher["keeper_pid"].get<int>(), "master");
  kill(launcher["pid"].get<int>(), SIGKILL);
  ASSERT_EQ(run.wait(), 0) << run.output();
  std::string output = run.output(), after = output.substr(output.find("going back to step 10"));
  EXPECT_THAT(after, AllOf(HasSubstr("going on from the checkpoint of step"),
                           Not(HasSubstr("going on from the checkpoint of step 10\n"))));
  EXPECT_EQ(run.state_hash(), straight.state_hash());
  EXPECT_EQ(run.metrics().size(), 150u);
  EXPECT_FALSE(std::filesystem::exists(run.folder() + "/checkpoint/abandoned.2"));
}

TEST(GoingBack, NewRunStartsFromAnyCheckpointOfAnother) {
  TrainingRun run(settings(10));
  train_to(run, {5, 10});
  TrainingRun fork(settings(8)), none(settings(8));
  ASSERT_EQ(fork.train({"--from", run.folder() + "@5"}), 0) << fork.output();
  EXPECT_THAT(fork.output(), HasSubstr("going on from the checkpoint of step 5"));
  EXPECT_EQ(none.train({"--from", run.folder() + "@6"}), 2);
  EXPECT_THAT(none.output(), HasSubstr("no complete checkpoint of step 6"));
}

TEST(Replay, ARunThatComputesStepsTwiceHasTheSameLossesAndState) {
  TrainingRun run(settings());
  ASSERT_EQ(run.train({"--set", listed, "--set", "check.replay_every=3"}), 0) << run.output();
  expect_as_left_out(run);
  for (const nlohmann::json& line : run.metrics()) {
    auto step = line["step"].get<int>();
    bool computed = step < 12 || step > 14;
    EXPECT_EQ(line.contains("replay_ms"), computed && step % 3 == 0) << step;
  }
}

}  // namespace
}  // namespace ganymede::test
