#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>

#include "common/os/files.h"
#include "tests/support/process_wait.h"
#include "tests/support/undisturbed_run.h"

/// Every restart is an event: why, where, when, and how long each phase took.
namespace ganymede::test {
namespace {

using nlohmann::json;

/// The events of all lines of the metrics.
std::vector<json> events_of(const TrainingRun& run) {
  std::vector<json> events;
  for (const json& line : run.metrics())
    for (const json& event : line.value("restart_events", json::array())) {
      EXPECT_GT(line["step"], event["step"]);
      events.push_back(event);
    }
  return events;
}

void expect_durations(const json& event) {
  for (const char* phase : {"detect_ms", "restart_ms", "reform_ms", "redo_ms"}) {
    ASSERT_TRUE(event[phase].is_number()) << phase << " in " << event;
    EXPECT_GE(event[phase], 0) << phase;
  }
  EXPECT_GT(event["restart_ms"], 0);
}

/// Kills `pid` at step 8; the run's one event, once it is over.
json event_after_kill(TrainingRun& run, int pid) {
  ::kill(pid, SIGKILL);
  wait_until(
      [&] {
        json status = run.status();
        return !status["restart_events"].empty() && status["restart_events"][0]["redo_ms"].is_number();
      },
      30, "the event");
  std::string text = run.ganymede({"ctl", run.folder(), "status"}).output;
  EXPECT_THAT(text, ::testing::HasSubstr("killed by SIGKILL"));
  EXPECT_EQ(run.wait(), 0) << run.output();
  EXPECT_THAT(run.output(), ::testing::HasSubstr("is back, the run went on after"));
  std::vector<json> events = events_of(run);
  EXPECT_EQ(events.size(), 1u);
  if (events.empty()) return {};
  expect_durations(events[0]);
  EXPECT_EQ(events[0]["cause"], "killed by SIGKILL");
  EXPECT_EQ(events[0]["node"], 0);
  EXPECT_GE(events[0]["step"], 8);
  return events[0];
}

std::vector<std::string> settings() { return UndisturbedRun::settings(200, 0); }

TEST(RestartEvent, OfAWorkerNamesItsGeneration) {
  TrainingRun run(settings());
  run.start();
  run.wait_for_step(8);
  json event = event_after_kill(run, run.pid_of("worker", 1));
  EXPECT_EQ(event["process"], "worker of rank 1");
  EXPECT_EQ(event["generation"], 2);
  EXPECT_GT(event["redo_ms"], 0);
}

TEST(RestartEvent, OfAnotherServiceNeedsNoGeneration) {
  TrainingRun run(settings());
  run.start();
  run.wait_for_step(8);
  json event = event_after_kill(run, run.pid_of("optimizer", 0));
  EXPECT_EQ(event["process"], "optimizer of rank 0");
  EXPECT_EQ(event["generation"], 0);
  EXPECT_EQ(event["reform_ms"], 0);
}

TEST(RestartEvent, OfTheLauncherIsWrittenByTheNextOne) {
  TrainingRun run(settings());
  run.start();
  run.wait_for_step(8);
  json event = event_after_kill(run, run.status()["launchers"][0]["pid"].get<int>());
  EXPECT_EQ(event["process"], "launcher");
  EXPECT_EQ(event["generation"], 2);
}

TEST(RestartEvent, OfAStoppedWorkerSaysHowLongItStoodStill) {
  auto with_timeout = settings();
  with_timeout.emplace_back("launch.heartbeat_timeout_seconds=3");
  TrainingRun run(with_timeout);
  run.start();
  run.wait_for_step(8);
  ::kill(run.pid_of("worker", 1), SIGSTOP);
  EXPECT_EQ(run.wait(), 0) << run.output();
  std::vector<json> events = events_of(run);
  ASSERT_EQ(events.size(), 1u);
  expect_durations(events[0]);
  EXPECT_GE(events[0]["detect_ms"], 3000);
  EXPECT_THAT(events[0]["cause"].get<std::string>(), ::testing::HasSubstr("no sign of life"));
  std::string where = os::read_file(run.folder() + "/logs/where.txt");
  EXPECT_THAT(where, ::testing::HasSubstr("worker of rank 1: it gave no sign of life for 3.0 s"));
  EXPECT_THAT(where, ::testing::HasSubstr("rank 1     worker      stopped"));
  std::string stacks = os::read_file(run.folder() + "/logs/worker.0.stacks");
  EXPECT_THAT(stacks, ::testing::HasSubstr("thread "));
  EXPECT_FALSE(std::filesystem::exists(run.folder() + "/logs/worker.1.stacks")) << "it was stopped";
}

}  // namespace
}  // namespace ganymede::test
