#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>

#include "tests/support/process_wait.h"
#include "tests/support/undisturbed_run.h"

/// Real runs with MuonClip: what is known of the attention of all ranks limits what the servers of each write.
namespace ganymede::test {
namespace {

constexpr double threshold = 0.4;  // without it they reach 1.4

std::vector<std::string> settings(const char* optimizer, int steps) {
  std::vector<std::string> all = UndisturbedRun::settings(steps, 20);
  all.push_back(std::string("optimizer.name=") + optimizer);
  all.push_back("optimizer.muonclip.threshold=" + std::to_string(threshold));
  for (const char* more : {"launch.restart_budget=100000", "validation.every_steps=0"}) all.emplace_back(more);
  return all;
}

std::vector<std::string> muonclip_settings() {
  std::vector<std::string> all = settings("muonclip", 60);
  for (const char* more : {"optimizer.lr=0.02", "optimizer.group.rest.lr=3e-3"}) all.emplace_back(more);
  return all;
}

/// 0 in a line that has none.
double largest_logit(const nlohmann::json& line) { return line.value("attention_logit_max", 0.0); }

TEST(MuonClip, KilledServicesComeBackWithoutAChangeOfTheResult) {
  UndisturbedRun undisturbed(muonclip_settings());
  TrainingRun run(muonclip_settings());
  run.start();
  int rank = 0;
  for (std::uint64_t step : {8, 16, 24, 32, 40}) {
    run.wait_for_step(step);
    ::kill(run.pid_of(step % 16 == 0 ? "worker" : "optimizer", rank++ % 2), SIGKILL);
  }
  EXPECT_EQ(run.wait(), 0) << run.output();
  undisturbed.expect_same(run);
  double most = 0;
  for (const auto& line : run.metrics()) most = std::max(most, largest_logit(line));
  EXPECT_GT(most, threshold);
  EXPECT_LT(most, 2 * threshold);
}

TEST(MuonClip, ARunGoesOverToItAndHasItsLogitsFromThenOn) {
  TrainingRun run(settings("adamw", 150));
  run.start();
  run.wait_for_step(5);
  auto answer = run.ganymede({"ctl", run.folder(), "swap-optimizer", "muonclip", "--set", "lr=2e-2"});
  EXPECT_EQ(answer.exit_code, 0) << answer.output;
  EXPECT_EQ(run.wait(), 0) << run.output();
  auto lines = run.metrics();
  EXPECT_FALSE(lines.front().contains("attention_logit_max"));
  EXPECT_EQ(lines.back().at("optimizer"), "muonclip");
  for (const auto& line : lines) {
    if (line.at("optimizer") != "muonclip") continue;
    EXPECT_GT(largest_logit(line), 0) << line.at("step");
  }
}

}  // namespace
}  // namespace ganymede::test
