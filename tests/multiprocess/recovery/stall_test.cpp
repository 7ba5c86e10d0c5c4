#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>

#include "tests/support/undisturbed_run.h"

/// Any process may be stopped, or stand still, while a run goes: it is found and replaced, and the curve stays that of
/// an undisturbed run, bit for bit.
namespace ganymede::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

/// launch.stall_seconds, and what is over before a stopped process has ended: two looks a quarter of a second apart, a
/// quarter for the stacks of the others, its end. A machine with much to do is late at each of them.
constexpr double least_ms = 5000, most_ms = 10000;

/// Steps enough that the others have something to do meanwhile.
std::vector<std::string> settings() { return UndisturbedRun::settings(60, 20); }

void expect_as_undisturbed(const TrainingRun& run) {
  static UndisturbedRun undisturbed(60, 20);
  undisturbed.expect_same(run);
}

/// The one restart of a run that has ended.
json restart_of(const TrainingRun& run) {
  json events = json::array();
  for (const json& line : run.metrics())
    for (const json& event : line.value("restart_events", json::array())) events.push_back(event);
  EXPECT_EQ(events.size(), 1u) << events << run.output();
  return events.empty() ? json() : events[0];
}

void expect_found_in_time(const json& event, const std::string& process) {
  EXPECT_EQ(event.at("process"), process);
  EXPECT_THAT(event.at("cause").get<std::string>(), HasSubstr("it was stopped by a signal for 5."));
  EXPECT_GE(event.at("detect_ms"), least_ms);
  EXPECT_LE(event.at("detect_ms"), most_ms);
}

class StoppedService : public ::testing::TestWithParam<std::string> {};

TEST_P(StoppedService, IsFoundWithinSecondsAndReplacedWithoutAChangeOfTheResult) {
  TrainingRun run(settings());
  run.start();
  run.wait_for_step(8);
  ::kill(run.pid_of(GetParam(), 1), SIGSTOP);
  EXPECT_EQ(run.wait(), 0) << run.output();
  expect_found_in_time(restart_of(run), GetParam() + " of rank 1");
  expect_as_undisturbed(run);
  EXPECT_TRUE(run.leftovers().empty());
}

INSTANTIATE_TEST_SUITE_P(Stall, StoppedService, ::testing::Values("worker", "optimizer", "data", "checkpoint"),
                         [](const auto& tested) { return tested.param; });

TEST(Stall, StoppedLauncherIsFoundByItsKeeperAndTheRunGoesOnFromMemory) {
  TrainingRun run(settings());
  run.start();
  run.wait_for_step(8);
  ::kill(run.status()["launchers"][0]["pid"].get<int>(), SIGSTOP);
  EXPECT_EQ(run.wait(), 0) << run.output();
  EXPECT_THAT(run.output(), HasSubstr("The launcher is killed: it was stopped by a signal"));
  expect_found_in_time(restart_of(run), "launcher");
  expect_as_undisturbed(run);
  EXPECT_TRUE(run.leftovers().empty());
}

TEST(Stall, StoppedKeeperHoldsUpNobody) {
  TrainingRun run(settings());
  run.start();
  run.wait_for_step(8);
  run.signal(SIGSTOP);
  run.wait_for_step(60);
  run.signal(SIGCONT);
  EXPECT_EQ(run.wait(), 0) << run.output();
  expect_as_undisturbed(run);
}

TEST(Stall, WorkerThatSleepsInAnOperationIsReplacedAndNotTheOneThatWaitsForIt) {
  auto with_threads = settings();
  with_threads.emplace_back("compute.threads=2");
  TrainingRun run(with_threads);
  run.environment.emplace_back("LD_PRELOAD", SLEEPY_PARALLEL);
  run.start();
  run.wait_for_step(8);
  std::ofstream(run.folder() + "/sleep") << "";
  EXPECT_EQ(run.wait(), 0) << run.output();
  json event = restart_of(run);
  EXPECT_THAT(event.at("process").get<std::string>(), HasSubstr("worker of rank"));
  EXPECT_THAT(event.at("cause").get<std::string>(), HasSubstr("used no processor"));
  EXPECT_GE(event.at("detect_ms"), least_ms);
  UndisturbedRun(with_threads).expect_same(run);
}

/// "sleep" and "spin": what the plugin does, see sleeper.c.
class PluginThatStandsStill : public ::testing::TestWithParam<std::string> {};

TEST_P(PluginThatStandsStill, CostsItsServerAndNothingElse) {
  auto with_plugin = settings();
  with_plugin.emplace_back("optimizer.name=sleeper");
  with_plugin.emplace_back(std::string("optimizer.plugin_folder=") + SLEEPER_FOLDER);
  TrainingRun run(with_plugin);
  run.start();
  run.wait_for_step(8);
  std::ofstream(run.folder() + "/" + GetParam()) << "";
  EXPECT_EQ(run.wait(), 0) << run.output();
  json event = restart_of(run);
  EXPECT_THAT(event.at("process").get<std::string>(), HasSubstr("optimizer of rank"));
  std::string how = GetParam() == "sleep" ? "used no processor" : "computed all the time";
  EXPECT_THAT(event.at("cause").get<std::string>(), HasSubstr(how));
  EXPECT_THAT(event.at("cause").get<std::string>(), HasSubstr("applying a step"));
  EXPECT_GE(event.at("detect_ms"), least_ms);
  static UndisturbedRun undisturbed(with_plugin);
  undisturbed.expect_same(run);
}

INSTANTIATE_TEST_SUITE_P(Stall, PluginThatStandsStill, ::testing::Values("sleep", "spin"),
                         [](const auto& tested) { return tested.param; });

}  // namespace
}  // namespace ganymede::test
