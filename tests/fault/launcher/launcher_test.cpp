#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "common/base/error.h"
#include "tests/support/fake_programs.h"
#include "tests/support/other_builds.h"
#include "tests/support/process_wait.h"
#include "tests/support/training_run.h"

/// Faults of services and of the launcher itself, played with fake services: the real keeper and launcher have to end
/// in the right way and to leave nothing behind.
namespace ganymede::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class LauncherFault : public ::testing::Test {
 protected:
  LauncherFault() {
    std::filesystem::create_directory(dataset_.path() + "/set");
    run_.data = dataset_.path() + "/set";
  }
  void play(const std::string& service, const std::string& behaviour) {
    run_.environment.emplace_back("FAKE_" + service, behaviour);
  }
  /// Every fake runs: the launcher answers, and all services are there.
  void wait_until_all_run() {
    wait_until(
        [&] {
          auto answer = run_.ganymede({"ctl", run_.folder(), "status", "--json"});
          if (answer.exit_code != 0) return false;
          auto status = nlohmann::json::parse(answer.output);
          for (const auto& cell : status["cells"])
            for (const auto& service : cell["services"])
              if (service["state"] != "running") return false;
          return !status["cells"].empty();
        },
        30, "all services run");
  }
  void wait_for_generation(int wanted) {
    wait_until([&] { return run_.status()["generation"] == wanted; }, 10, fmt::format("generation {}", wanted));
  }
  void expect_nothing_left() {
    wait_until([&] { return run_.leftovers().empty(); }, 5, "no process is left");
  }

  TemporaryFolder dataset_;  // the fakes do not look at it
  FakePrograms programs_;
  TrainingRun run_{{"parallel.ranks=2", "launch.restart_budget=2", "launch.heartbeat_timeout_seconds=2",
                    "launch.stop_timeout_seconds=2"},
                   programs_.path()};
};

TEST_F(LauncherFault, ServiceThatDiesAgainAndAgainEndsTheRunWithItsLastWords) {
  play("DATA", "die");
  EXPECT_EQ(run_.train(), 1);
  EXPECT_THAT(run_.output(), HasSubstr("ended: exit code 3"));
  EXPECT_THAT(run_.output(), HasSubstr("more than 2 times"));
  EXPECT_THAT(run_.output(), HasSubstr("the fake dies"));
  expect_nothing_left();
  auto status = run_.ganymede({"ctl", run_.folder(), "status"});
  EXPECT_THAT(status.output, HasSubstr(": failed at step 0"));
  EXPECT_THAT(status.output, HasSubstr("more than 2 times"));
}

TEST_F(LauncherFault, CrashIsNamedBySignalAndStack) {
  play("OPTIMIZER", "crash");
  EXPECT_EQ(run_.train(), 1);
  EXPECT_THAT(run_.output(), HasSubstr("killed by SIGSEGV"));
  EXPECT_THAT(run_.output(), HasSubstr("crashed by SIGSEGV, stack:\n"));
  EXPECT_THAT(run_.output(), HasSubstr("/ganymede-optimizer(")) << "a frame of it";
  expect_nothing_left();
}

TEST_F(LauncherFault, UsageFaultOfAServiceIsNotTriedAgain) {
  play("CHECKPOINT", "usage");
  EXPECT_EQ(run_.train(), 2);
  EXPECT_THAT(run_.output(), Not(HasSubstr("started again")));
  expect_nothing_left();
}

TEST_F(LauncherFault, FatalReportStopsEverythingWithItsText) {
  play("DATA", "fatal");
  EXPECT_EQ(run_.train(), 1);
  EXPECT_THAT(run_.output(), HasSubstr("the fake fault"));
  expect_nothing_left();
}

TEST_F(LauncherFault, InterruptTwiceKillsEvenStubbornServicesAtOnce) {
  play("WORKER", "stubborn");
  run_.start();
  wait_until_all_run();
  run_.signal(SIGINT);
  run_.wait_for_state("stopping");
  EXPECT_TRUE(run_.running());
  run_.signal(SIGINT);
  EXPECT_EQ(run_.wait(10), 75);
  expect_nothing_left();
}

TEST_F(LauncherFault, StopNowByCommandEndsTheRunAtOnce) {
  run_.start();
  wait_until_all_run();
  EXPECT_EQ(run_.ganymede({"ctl", run_.folder(), "stop", "--now"}).exit_code, 0);
  EXPECT_EQ(run_.wait(10), 75);
  expect_nothing_left();
}

TEST_F(LauncherFault, KilledServiceIsReplacedAndWorkersDeathBeginsANewGeneration) {
  run_.start();
  wait_until_all_run();
  wait_for_generation(1);
  int data = run_.pid_of("data", 1), worker = run_.pid_of("worker", 0);
  ::kill(data, SIGKILL);
  wait_until([&] { return run_.pid_of("data", 1) != data && run_.pid_of("data", 1) != 0; }, 10, "a new data server");
  wait_until_all_run();
  EXPECT_EQ(run_.status()["generation"], 1);
  ::kill(worker, SIGKILL);
  wait_until([&] { return run_.pid_of("worker", 0) != worker && run_.pid_of("worker", 0) != 0; }, 10, "a new worker");
  wait_until_all_run();
  auto after = run_.status();
  EXPECT_EQ(after["generation"], 2);
  EXPECT_EQ(after["cells"][1]["services"]["data"]["restarts"], 1);
  EXPECT_EQ(after["cells"][0]["services"]["worker"]["restarts"], 1);
}

TEST_F(LauncherFault, NoGenerationBeginsBeforeEveryStateIsLoaded) {
  play("OPTIMIZER", "loading");
  run_.start();
  wait_until_all_run();
  std::this_thread::sleep_for(std::chrono::seconds(1));
  EXPECT_EQ(run_.status()["generation"], 0);
  EXPECT_EQ(run_.ganymede({"ctl", run_.folder(), "stop"}).exit_code, 0);
  EXPECT_EQ(run_.wait(10), 75) << "there is no step to wait for";
  expect_nothing_left();
}

TEST_F(LauncherFault, SilentServiceIsKilledAndReplaced) {
  run_.start();
  wait_until_all_run();
  int worker = run_.pid_of("worker", 1);
  ::kill(worker, SIGSTOP);
  wait_until([&] { return run_.pid_of("worker", 1) != worker; }, 15, "the stopped worker is replaced");
  wait_until_all_run();
  EXPECT_THAT(run_.output(), HasSubstr("no sign of life"));
}

TEST_F(LauncherFault, ServiceThatStandsStillInWhatItDoesAgainAndAgainIsKilledAndReplaced) {
  play("WORKER", "sleeps");
  run_.start();
  wait_until([&] { return run_.output().find("it is started again") != std::string::npos; }, 30, "a restart");
  wait_until_all_run();
  EXPECT_THAT(run_.output(), HasSubstr("and used no processor in what takes"));
  EXPECT_THAT(run_.output(), HasSubstr("(fake sleep)"));
  EXPECT_TRUE(run_.running());
}

TEST_F(LauncherFault, RestartByCommandIsNotChargedToTheBudget) {
  run_.start();
  wait_until_all_run();
  for (int i = 0; i < 4; ++i) {
    int before = run_.pid_of("checkpoint", 0);
    EXPECT_EQ(run_.ganymede({"ctl", run_.folder(), "restart", "checkpoint", "--rank", "0", "--wait", "0"}).exit_code,
              0);
    wait_until([&] { return run_.pid_of("checkpoint", 0) != before; }, 10, "a new checkpoint service");
    wait_until_all_run();
  }
  EXPECT_TRUE(run_.running());
  auto refused = run_.ganymede({"ctl", run_.folder(), "restart", "data", "--rank", "7"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.output, HasSubstr("no data of rank 7"));
}

/// What a build does that registers and only then fails; the budget would not bear it.
class LauncherFaultOfABuild : public LauncherFault, public ::testing::WithParamInterface<const char*> {};

TEST_P(LauncherFaultOfABuild, CostsTheTrialAloneAndTheServiceGoesBack) {
  run_.start();
  wait_until_all_run();
  std::string program = programs_.path() + "/ganymede-data";
  std::string bad = play_build(program, dataset_.path() + "/bad",
                               "FAKE_DATA=" + std::string(GetParam()) + " exec " + program + " \"$@\"");
  auto answer = run_.ganymede({"ctl", run_.folder(), "restart", "data", "--rank", "1", "--binary", bad}, 60);
  EXPECT_EQ(answer.exit_code, 1) << answer.output;
  EXPECT_THAT(answer.output, HasSubstr("it runs the installed program again"));
  wait_until_all_run();
  EXPECT_TRUE(run_.running());
}

INSTANTIATE_TEST_SUITE_P(Faults, LauncherFaultOfABuild, ::testing::Values("fatal", "crash", "die", "usage"),
                         [](const auto& one) { return one.param; });

TEST_F(LauncherFault, KilledLauncherIsReplacedAndGoesOnAboveTheGenerationsSeen) {
  run_.start();
  wait_until_all_run();
  wait_for_generation(1);
  auto before = run_.status();
  int launcher = before["launchers"][0]["pid"].get<int>();
  ::kill(launcher, SIGKILL);
  wait_until(
      [&] {
        auto answer = run_.ganymede({"ctl", run_.folder(), "status", "--json"});
        return answer.exit_code == 0 && nlohmann::json::parse(answer.output)["launchers"][0]["pid"] != launcher;
      },
      20, "a new launcher");
  wait_until_all_run();
  wait_for_generation(2);
  auto after = run_.status();
  EXPECT_EQ(after["launchers"][0]["keeper_pid"], before["launchers"][0]["keeper_pid"]);
  EXPECT_EQ(run_.leftovers().size(), 2u + 8u);  // keeper, launcher and eight services; none of the old ones
}

TEST_F(LauncherFault, KilledKeeperTakesEverythingWithIt) {
  run_.start();
  wait_until_all_run();
  run_.signal(SIGKILL);
  wait_until([&] { return run_.leftovers().empty(); }, 10, "no process is left");
  EXPECT_NE(run_.wait(5), 0);
}

TEST_F(LauncherFault, RanksThatNeverComeTogetherEndTheRunWithTheCause) {
  play("WORKER", "apart");
  EXPECT_EQ(run_.train(), 1);
  for (const char* part : {"generation 1 failed on rank", "generation 2 failed on rank", "another one begins",
                           "3 generations in a row failed without a step", "nobody is there", "topology.interface"})
    EXPECT_THAT(run_.output(), HasSubstr(part));
  expect_nothing_left();
}

/// Before there are services, while the dataset is packed.
class LauncherThatPacks : public LauncherFault {
 protected:
  LauncherThatPacks() {
    run_.data = dataset_.path() + "/to-be-packed";
    run_.environment.emplace_back("FAKE_PACK", "1");
    run_.start({"--set", "data.sources=[\"/usr\"]"});
    wait_until([&] { return ctl("where").output.find("packing the dataset") != std::string::npos; }, 20, "it packs");
  }
  TrainingRun::Answer ctl(const std::string& command) { return run_.ganymede({"ctl", run_.folder(), command}, 10); }
};

TEST_F(LauncherThatPacks, SaysSoAndIsStoppedByCommand) {
  EXPECT_EQ(run_.status()["state"], "recovering");
  EXPECT_THAT(run_.status()["detail"].get<std::string>(), HasSubstr("packing the dataset"));
  auto refused = ctl("checkpoint");
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.output, HasSubstr("no services now"));
  auto stopped = ctl("stop");
  EXPECT_EQ(stopped.exit_code, 0) << stopped.output;
  EXPECT_THAT(stopped.output, HasSubstr("stopped at once"));
  EXPECT_EQ(run_.wait(10), 75);
  EXPECT_FALSE(std::filesystem::exists(run_.folder() + "/config.toml")) << "nothing is half-written";
  expect_nothing_left();
}

TEST_F(LauncherFault, ServiceThatNeverEndsIsKilledAfterAFault) {
  play("WORKER", "stubborn");
  play("DATA", "fatal");
  EXPECT_EQ(run_.train({}, 30), 1);
  expect_nothing_left();
}

}  // namespace
}  // namespace ganymede::test
