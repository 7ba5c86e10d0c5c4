#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "tests/support/process_wait.h"
#include "tests/support/training_run.h"

/// What a person sees of a running job and can order.
namespace ganymede::test {
namespace {

using ::testing::HasSubstr;

/// A run that goes on until it is stopped.
std::vector<std::string> endless() { return {"parallel.ranks=2", "run.steps=1000000", "compute.threads=1"}; }

class Control : public ::testing::Test {
 protected:
  Control() {
    run_.start();
    run_.wait_for_step(3);
    run_.wait_for_state("training");
  }
  TrainingRun::Answer ctl(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"ctl", run_.folder()});
    return run_.ganymede(arguments);
  }
  TrainingRun run_{endless()};
};

TEST_F(Control, StatusHasEveryKeyThatScriptsRelyOn) {
  auto status = run_.status();
  EXPECT_EQ(status["run"], run_.folder());
  EXPECT_GE(status["step"], 3);
  EXPECT_EQ(status["generation"], 1);
  EXPECT_EQ(status["state"], "training");
  ASSERT_EQ(status["cells"].size(), 2u);
  for (const auto& cell : status["cells"]) {
    EXPECT_EQ(cell["node"], 0);
    for (const char* kind : {"worker", "optimizer", "data", "checkpoint"}) {
      EXPECT_EQ(::kill(cell["services"][kind]["pid"].get<int>(), 0), 0) << kind;
      EXPECT_EQ(cell["services"][kind]["restarts"], 0);
      EXPECT_TRUE(cell["services"][kind]["state"].is_string());
    }
  }
  ASSERT_EQ(status["launchers"].size(), 1u);
  EXPECT_EQ(::kill(status["launchers"][0]["pid"].get<int>(), 0), 0);
  EXPECT_EQ(::kill(status["launchers"][0]["keeper_pid"].get<int>(), 0), 0);
}

TEST_F(Control, SegmentsNameEveryTensor) {
  auto answer = ctl({"segments", "--json"});
  ASSERT_EQ(answer.exit_code, 0) << answer.output;
  auto segments = nlohmann::json::parse(answer.output);
  EXPECT_EQ(segments.size(), 20u);
  bool found = false;
  for (const auto& segment : segments) {
    EXPECT_FALSE(segment["holds"].get<std::string>().empty()) << segment["name"];
    if (segment["name"] != "rank.1/master") continue;
    found = true;
    EXPECT_EQ(segment["buckets"].front()["name"], "embed");
    EXPECT_EQ(segment["buckets"].back()["name"], "head");
  }
  EXPECT_TRUE(found);
  std::string text = ctl({"segments"}).output;
  for (const char* part : {"gradients_ready", "  layer.1.experts ", "fp32 parameters of this rank"})
    EXPECT_THAT(text, HasSubstr(part));
}

TEST_F(Control, WhereShowsTheStacksOfAllThreadsOnRequest) {
  auto answer = ctl({"where", "--stacks"});
  ASSERT_EQ(answer.exit_code, 0) << answer.output;
  auto json = nlohmann::json::parse(ctl({"where", "--stacks", "--json"}).output);
  EXPECT_EQ(json["stacks"].size(), 8u);
  for (const char* service : {"worker", "optimizer", "data", "checkpoint"})
    for (int rank : {0, 1}) {
      std::string file = "logs/" + std::string(service) + "." + std::to_string(rank) + ".stacks";
      EXPECT_THAT(answer.output, HasSubstr("\n" + file + "\nthread "));
      EXPECT_THAT(json["stacks"], ::testing::Contains(file));
    }
  EXPECT_THAT(answer.output, HasSubstr("ganymede-optimizer"));
  std::uint64_t step = run_.last_step();
  run_.wait_for_step(step + 5);
  EXPECT_EQ(run_.status()["restart_events"].size(), 0u) << "nobody is hurt by it";
}

TEST_F(Control, WhereSaysWhatEveryServiceDoes) {
  auto answer = ctl({"where"});
  EXPECT_EQ(answer.exit_code, 0);
  for (const char* part : {"rank 0", "rank 1", "worker", "optimizer"}) EXPECT_THAT(answer.output, HasSubstr(part));
}

TEST_F(Control, OrderedCheckpointIsWritten) {
  ASSERT_EQ(ctl({"checkpoint"}).exit_code, 0);
  wait_until([&] { return run_.status()["last_checkpoint"] > 0; }, 30, "a checkpoint");
  auto listed = run_.ganymede({"checkpoint", "list", run_.folder(), "--json"});
  ASSERT_EQ(listed.exit_code, 0) << listed.output;
  EXPECT_FALSE(nlohmann::json::parse(listed.output).empty());
}

TEST_F(Control, ServiceOfARankThatIsNotThereIsAUsageError) {
  auto answer = ctl({"restart", "worker", "--rank", "2"});
  EXPECT_EQ(answer.exit_code, 2);
  EXPECT_NE(answer.output.find("There is no worker of rank 2: ranks are 0 to 1."), std::string::npos) << answer.output;
}

TEST_F(Control, RestartedServiceComesBackAndTrainingGoesOn) {
  int before = run_.pid_of("worker", 1);
  ASSERT_EQ(ctl({"restart", "worker", "--rank", "1"}).exit_code, 0);
  wait_until([&] { return run_.pid_of("worker", 1) != before; }, 20, "a new worker");
  run_.wait_for_state("training");
  run_.wait_for_step(run_.last_step() + 3);
  EXPECT_EQ(run_.status()["generation"], 2);
}

TEST_F(Control, SecondRunInTheSameFolderIsRefusedAndDoesNoHarm) {
  auto second = run_.ganymede({"train", run_.recipe, "--run", run_.folder(), "--set", "data.path=" + run_.data});
  EXPECT_EQ(second.exit_code, 2);
  EXPECT_THAT(second.output, HasSubstr("in use by process"));
  run_.wait_for_step(run_.last_step() + 3);
}

TEST_F(Control, StopTwiceFromTheTerminalEndsAtOnce) {
  run_.signal(SIGINT);
  wait_until([&] { return run_.output().find("stopping") != std::string::npos; }, 10, "the first one is noticed");
  run_.signal(SIGINT);
  EXPECT_EQ(run_.wait(15), 75);
  wait_until([&] { return run_.leftovers().empty(); }, 5, "no process is left");
}

TEST(ControlOfAStoppedRun, StatusAndWhereAnswer) {
  TrainingRun run({"run.steps=2"});
  ASSERT_EQ(run.train(), 0);
  auto status = run.status();
  EXPECT_EQ(status["state"], "stopped");
  EXPECT_EQ(status["step"], 2);
  auto where = run.ganymede({"ctl", run.folder(), "where"});
  EXPECT_EQ(where.exit_code, 0);
  EXPECT_THAT(where.output, HasSubstr("done at step 2/2"));
  for (const char* command : {"stop", "checkpoint", "segments"}) {
    auto answer = run.ganymede({"ctl", run.folder(), command});
    EXPECT_EQ(answer.exit_code, 1) << command;
    EXPECT_THAT(answer.output, HasSubstr("No job runs in"));
  }
}

TEST(ClosingLines, NameLossSampleCheckpointAndThreeCommandsThatWork) {
  TrainingRun run({"run.steps=4", "validation.every_steps=4", "sample.prompt=def ", "sample.tokens=8"});
  ASSERT_EQ(run.train(), 0);
  for (const char* part : {"step 4/4 | loss", "validation loss", "sample of 8 tokens:\ndef ", "checkpoint: step 4",
                           "generate", "ctl", "--steps 50"})
    EXPECT_THAT(run.output(), HasSubstr(part));
  EXPECT_EQ(run.ganymede({"generate", run.folder(), "--prompt", "def ", "--tokens", "4"}).exit_code, 0);
  EXPECT_EQ(run.output().find('\x1b'), std::string::npos) << "control characters in a file";
}

}  // namespace
}  // namespace ganymede::test
