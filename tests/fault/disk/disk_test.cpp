#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>

#include "common/base/error.h"
#include "tests/fault/disk/small_disk.h"
#include "tests/support/process_wait.h"
#include "tests/support/undisturbed_run.h"

/// Disks that are full or cannot be written while a run goes on: it goes on as long as it can, says what does not work,
/// and makes good for it later.
namespace ganymede::test {
namespace {

using ::testing::HasSubstr;

constexpr int megabytes = 24;

std::vector<std::string> settings() {
  auto all = UndisturbedRun::settings(100'000, 10);
  all.emplace_back("validation.every_steps=0");
  return all;
}

class Disk : public testing::Test {
 protected:
  void SetUp() override {
    if (std::string obstacle = disk_obstacle(); !obstacle.empty()) GTEST_SKIP() << obstacle;
  }
  void TearDown() override { run_.kill_everything(); }

  /// `part` is "checkpoint" or "metrics.jsonl".
  void await_degraded(const std::string& part) {
    wait_until([&] { return degraded().find(part) != std::string::npos; }, 40, part + " does not work");
  }
  void await_sound() {
    wait_until([&] { return degraded().empty(); }, 40, "all works again");
  }
  void expect_progress() {
    std::uint64_t decided = step();
    wait_until([&] { return step() >= decided + 3; }, 40, "training goes on");
  }
  /// In this order: once there is a checkpoint.
  void start() {
    run_.start();
    run_.wait_for_step(1);
    wait_until([&] { return run_.status().value("last_checkpoint", -1) > 0; }, 60, "the first checkpoint");
  }
  void expect_undisturbed_result() {
    EXPECT_EQ(run_.ganymede({"ctl", run_.folder(), "stop"}).exit_code, 0);
    EXPECT_EQ(run_.wait(), 75) << run_.output();
    auto as_long = settings();
    as_long.push_back(fmt::format("run.steps={}", run_.last_step()));
    UndisturbedRun(as_long).expect_same(run_);
  }
  std::string degraded() { return run_.status().value("degraded", nlohmann::json::array()).empty() ? "" : text(); }
  std::string text() { return run_.ganymede({"ctl", run_.folder(), "status"}).output; }
  std::uint64_t step() { return run_.status().value("step", std::uint64_t{0}); }

  TrainingRun run_{settings()};
};

TEST_F(Disk, CheckpointsThatFindNoRoomAreReportedAndTriedAgain) {
  SmallDisk disk(run_.folder() + "/checkpoint", megabytes);
  start();
  disk.fill();
  await_degraded("checkpoint of step");
  EXPECT_THAT(text(), HasSubstr("degraded: The checkpoint of step "));
  EXPECT_THAT(text(), HasSubstr("there is no space left on the disk"));
  EXPECT_THAT(run_.output(), HasSubstr("training goes on, and the next checkpoint tries again"));
  expect_progress();
  disk.make_room();
  await_sound();
  EXPECT_THAT(run_.output(), HasSubstr("checkpoints are written again"));
  expect_undisturbed_result();
}

/// Also where a database has to be opened, which writes before it reports anything.
TEST_F(Disk, ACheckpointServiceThatIsStartedAgainOnAFullDiskCostsNoStep) {
  SmallDisk disk(run_.folder() + "/checkpoint", megabytes);
  start();
  disk.fill();
  await_degraded("checkpoint of step");
  ::kill(run_.pid_of("checkpoint", 1), SIGKILL);
  wait_until([&] { return run_.output().find("checkpoint of rank 1 is back") != std::string::npos; }, 40, "it is back");
  expect_progress();
  EXPECT_THAT(run_.output(), testing::Not(HasSubstr("SIGABRT")));
  disk.make_room();
  await_sound();
  expect_undisturbed_result();
}

TEST_F(Disk, CheckpointsOnADiskThatBecomesReadOnlyAreReportedAndTriedAgain) {
  SmallDisk disk(run_.folder() + "/checkpoint", megabytes);
  start();
  disk.set_read_only(true);
  await_degraded("checkpoint of step");
  EXPECT_THAT(text(), HasSubstr("Read-only file system"));
  expect_progress();
  disk.set_read_only(false);
  await_sound();
  expect_undisturbed_result();
}

TEST_F(Disk, ACheckpointServiceKilledWhileItsDiskIsFullComesBackAndTriesAgain) {
  SmallDisk disk(run_.folder() + "/checkpoint", megabytes);
  start();
  disk.fill();
  await_degraded("checkpoint of step");
  for (int rank : {0, 1}) ::kill(run_.pid_of("checkpoint", rank), SIGKILL);
  expect_progress();
  disk.make_room();
  await_sound();
  expect_undisturbed_result();
}

/// Where metrics.jsonl lies on a disk of its own.
class MetricsDisk : public Disk {
 protected:
  SmallDisk& mount() {
    disk_.emplace(home_.path() + "/disk", 1);
    std::filesystem::create_directories(run_.folder());
    std::filesystem::create_symlink(home_.path() + "/disk/metrics.jsonl", run_.folder() + "/metrics.jsonl");
    return *disk_;
  }

  TemporaryFolder home_;
  std::optional<SmallDisk> disk_;
};

TEST_F(MetricsDisk, LinesOfStepsWaitUntilThereIsRoom) {
  SmallDisk& disk = mount();
  start();
  disk.fill();
  await_degraded("metrics.jsonl");
  EXPECT_THAT(text(), HasSubstr("cannot be written: No space left on device. Make room on its disk."));
  expect_progress();
  disk.make_room();
  await_sound();
  EXPECT_THAT(run_.output(), HasSubstr("metrics are written again"));
  expect_undisturbed_result();
}

TEST_F(MetricsDisk, ARunWhoseLastLinesFindNoRoomSaysSoAndItsNextStartGoesOn) {
  SmallDisk& disk = mount();
  start();
  disk.fill();
  await_degraded("metrics.jsonl");
  EXPECT_EQ(run_.ganymede({"ctl", run_.folder(), "stop"}).exit_code, 0);
  EXPECT_EQ(run_.wait(), 1) << run_.output();
  EXPECT_THAT(run_.output(), HasSubstr("The lines of the last steps are lost; the same command goes on from the "
                                       "checkpoint of step "));
  disk.make_room();
  std::uint64_t written = run_.last_step();
  run_.start();
  wait_until([&] { return run_.last_step() > written + 20; }, 60, "the run goes on");
  EXPECT_EQ(run_.ganymede({"ctl", run_.folder(), "stop"}).exit_code, 0);
  EXPECT_EQ(run_.wait(), 75) << run_.output();
  auto as_long = settings();
  as_long.push_back(fmt::format("run.steps={}", run_.last_step()));
  TrainingRun undisturbed(as_long);
  EXPECT_EQ(undisturbed.train(), 0) << undisturbed.output();
  EXPECT_EQ(run_.state_hash(), undisturbed.state_hash());
}

TEST_F(Disk, OfTheWholeRunMayBeFullWhileEveryServiceDiesAndComesBack) {
  SmallDisk disk(run_.folder(), megabytes);
  start();
  disk.fill();
  await_degraded("metrics.jsonl");
  await_degraded("checkpoint of step");
  for (const char* service : {"worker", "optimizer", "data", "checkpoint"}) {
    int pid = run_.pid_of(service, 1);
    ::kill(pid, SIGKILL);
    wait_until([&] { return run_.pid_of(service, 1) > 0 && run_.pid_of(service, 1) != pid; }, 40, service);
    expect_progress();
  }
  disk.make_room();
  await_sound();
  expect_undisturbed_result();
}

}  // namespace
}  // namespace ganymede::test
