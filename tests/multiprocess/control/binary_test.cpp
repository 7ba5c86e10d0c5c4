#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "tests/support/other_builds.h"
#include "tests/support/process_wait.h"
#include "tests/support/training_run.h"
#include "tests/support/tree.h"

/// Services of a running job go over to another build of their program.
namespace ganymede::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

/// The learning rate does not depend on how far the run goes.
std::vector<std::string> settings(std::uint64_t steps) {
  return {"parallel.ranks=2", "run.steps=" + std::to_string(steps), "compute.threads=1", "optimizer.decay_steps=1000"};
}

class AnotherBuild : public ::testing::Test {
 protected:
  AnotherBuild() {
    run_.start();
    run_.wait_for_step(5);
  }
  TrainingRun::Answer restart(const std::string& service, std::vector<std::string> more) {
    more.insert(more.begin(), {"ctl", run_.folder(), "restart", service, "--wait", "120"});
    return run_.ganymede(more, 240);
  }
  static std::string installed(const std::string& service) {
    return std::string(GANYMEDE_BINARY_DIR) + "/ganymede-" + service;
  }
  std::string file_of(const std::string& service, int rank) const { return running_file(run_.pid_of(service, rank)); }
  void wait_for_another(const std::string& service, int rank, int before) {
    wait_until(
        [&] {
          auto answer = run_.ganymede({"ctl", run_.folder(), "status", "--json"});
          if (answer.exit_code != 0) return false;
          auto status = nlohmann::json::parse(answer.output);
          if (status["state"] != "training") return false;
          int now = status["cells"][static_cast<std::size_t>(rank)]["services"][service]["pid"];
          return now != 0 && now != before;
        },
        40, "another " + service);
  }

  TemporaryFolder builds_;
  TrainingRun run_{settings(1'000'000)};
};

TEST_F(AnotherBuild, OfTheWorkerIsKeptOverCrashesOfWorkerAndLauncherAndChangesNoBit) {
  auto answer = restart("worker", {"--binary", other_build(installed("worker"), builds_.path() + "/worker")});
  ASSERT_EQ(answer.exit_code, 0) << answer.output;
  EXPECT_THAT(answer.output, HasSubstr("the worker of rank 1 was started again with programs/ganymede-worker."));
  EXPECT_THAT(file_of("worker", 0), StartsWith("ganymede-worker."));
  EXPECT_THAT(file_of("worker", 1), StartsWith("ganymede-worker."));
  EXPECT_EQ(file_of("data", 1), "ganymede-data");
  int worker = run_.pid_of("worker", 1);
  ::kill(worker, SIGKILL);
  wait_for_another("worker", 1, worker);
  EXPECT_THAT(file_of("worker", 1), StartsWith("ganymede-worker."));
  worker = run_.pid_of("worker", 0);
  ::kill(run_.status()["launchers"][0]["pid"].get<int>(), SIGKILL);
  wait_for_another("worker", 0, worker);
  EXPECT_THAT(file_of("worker", 0), StartsWith("ganymede-worker."));
  EXPECT_THAT(run_.ganymede({"ctl", run_.folder(), "status"}).output,
              HasSubstr("worker of rank 1 runs programs/ganymede-worker."));
  answer = restart("worker", {"--binary", "default", "--rank", "0"});
  EXPECT_EQ(answer.exit_code, 0) << answer.output;
  EXPECT_EQ(file_of("worker", 0), "ganymede-worker");
  EXPECT_THAT(file_of("worker", 1), StartsWith("ganymede-worker."));
  ASSERT_EQ(run_.ganymede({"ctl", run_.folder(), "drain"}, 120).exit_code, 0);
  EXPECT_EQ(run_.wait(), 75) << run_.output();
  TrainingRun undisturbed(settings(run_.last_step()));
  ASSERT_EQ(undisturbed.train({}, 120), 0) << undisturbed.output();
  EXPECT_EQ(run_.losses(), undisturbed.losses());
  EXPECT_EQ(run_.state_hash(), undisturbed.state_hash());
}

TEST_F(AnotherBuild, OfEveryOtherServiceIsTakenOverWhileTheRunTrains) {
  for (const char* service : {"optimizer", "data", "checkpoint"}) {
    auto answer =
        restart(service, {"--rank", "1", "--binary", other_build(installed(service), builds_.path() + "/" + service)});
    EXPECT_EQ(answer.exit_code, 0) << answer.output;
    EXPECT_THAT(file_of(service, 1), StartsWith("ganymede-" + std::string(service) + "."));
    EXPECT_EQ(file_of(service, 0), "ganymede-" + std::string(service));
  }
  EXPECT_EQ(run_.status()["generation"], 1);
}

TEST_F(AnotherBuild, ThatCannotWorkInTheRunIsRefusedAndNothingIsRestarted) {
  int before = run_.pid_of("worker", 0);
  std::string alien = play_build("echo ganymede-worker 0123/4567; true", builds_.path() + "/alien", "exit 0");
  for (const auto& [binary, why] : std::vector<std::pair<std::string, std::string>>{
           {"/bin/true", "that is no ganymede-worker"},
           {installed("data"), "that is no ganymede-worker"},
           {installed("worker") + ".missing", "there is no such file"},
           {alien, "speaks another protocol than this run (0123/4567, not "}}) {
    auto answer = restart("worker", {"--binary", binary});
    EXPECT_EQ(answer.exit_code, 2) << binary;
    EXPECT_THAT(answer.output, HasSubstr(why));
  }
  EXPECT_EQ(run_.pid_of("worker", 0), before);
}

TEST_F(AnotherBuild, ThatEndsAtOnceGivesWayToTheOneBefore) {
  auto answer =
      restart("worker", {"--binary", play_build(installed("worker"), builds_.path() + "/bad", "kill -SEGV $$")});
  EXPECT_EQ(answer.exit_code, 1);
  std::string told =
      "ended 2 times before it had worked for a moment (killed by SIGSEGV); it runs the installed program again";
  EXPECT_THAT(answer.output, HasSubstr(told));
  EXPECT_THAT(run_.output(), HasSubstr(told));
  run_.wait_for_state("training");
  run_.wait_for_step(run_.last_step() + 3);
  EXPECT_EQ(file_of("worker", 0), "ganymede-worker");
  EXPECT_THAT(run_.ganymede({"ctl", run_.folder(), "status"}).output, HasSubstr(told));
}

}  // namespace
}  // namespace ganymede::test
