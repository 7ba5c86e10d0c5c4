#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>

#include "tests/support/process_wait.h"
#include "tests/support/tree.h"
#include "tests/support/undisturbed_run.h"

/// Any process may be killed while a run goes; the curve stays that of an undisturbed run, bit for bit.
namespace ganymede::test {
namespace {

std::vector<std::string> settings() { return UndisturbedRun::settings(60, 20); }

void expect_as_undisturbed(const TrainingRun& run) {
  static UndisturbedRun undisturbed(60, 20);
  undisturbed.expect_same(run);
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

/// Programs whose first launcher crashes when all is done and its segments are given back.
class CrashingLauncher {
 public:
  CrashingLauncher() {
    namespace fs = std::filesystem;
    fs::path build = GANYMEDE_BINARY_DIR, here = folder_.path();
    fs::create_directory(here / "plugins");
    for (const char* name : {"ganymede", "ganymede-keeper", "ganymede-checkpoint", "ganymede-data",
                             "ganymede-optimizer", "plugins/adamw.so"}) {
      fs::copy_file(build / name, here / name);
    }
    std::ofstream(here / "ganymede-launcher") << "#!/bin/bash\nreal=" << build / "ganymede-launcher"
                                              << "\n"
                                                 "[ -e ipc/crashed ] && exec \"$real\" \"$@\"\n"
                                                 "touch ipc/crashed\n"
                                                 "\"$real\" \"$@\" & child=$!\n"
                                                 "trap 'kill -TERM $child' INT TERM\n"
                                                 "while kill -0 $child 2>/dev/null; do wait $child; done\n"
                                                 "kill -9 $$\n";
    fs::permissions(here / "ganymede-launcher", fs::perms::owner_all);
  }
  const std::string& path() const { return folder_.path(); }

 private:
  TemporaryFolder folder_;
};

void expect_stopped_where_it_was(TrainingRun& run) {
  EXPECT_EQ(run.wait(), 75);
  EXPECT_THAT(run.output(), ::testing::HasSubstr("it is started again"));
  EXPECT_THAT(run.output(), ::testing::Not(::testing::HasSubstr("going on from the checkpoint")));
  EXPECT_LT(run.last_step(), 60u);
  EXPECT_EQ(run.train(), 0);
  expect_as_undisturbed(run);
}

TEST(Recovery, LauncherThatCrashesAfterAnInterruptDoesNotTrainOn) {
  CrashingLauncher programs;
  TrainingRun run(settings(), programs.path());
  run.start();
  run.wait_for_step(5);
  run.signal(SIGINT);
  expect_stopped_where_it_was(run);
}

TEST(Recovery, LauncherThatCrashesAfterAStopByCommandDoesNotTrainOn) {
  CrashingLauncher programs;
  TrainingRun run(settings(), programs.path());
  run.start();
  run.wait_for_step(5);
  EXPECT_EQ(run.ganymede({"ctl", run.folder(), "stop"}).exit_code, 0);
  expect_stopped_where_it_was(run);
}

TEST(Recovery, StoppedWorkerIsKilledAndReplaced) {
  auto with_timeout = settings();
  with_timeout.emplace_back("launch.heartbeat_timeout_seconds=3");
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
