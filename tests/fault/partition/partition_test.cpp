#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <sstream>
#include <thread>

#include "tests/support/kills/processes.h"
#include "tests/support/network/nodes_run.h"
#include "tests/support/process_wait.h"
#include "tests/support/undisturbed_run.h"

/// The network between two launchers is cut: the run goes on later, or stops on both sides with the reason. There is
/// one coordinator at any time, and no rank computes what others do not.
namespace ganymede::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr auto out_for = std::chrono::seconds(10);

std::vector<std::string> settings(std::vector<std::string> more = {}) {
  auto all = UndisturbedRun::settings(100'000, 10);
  for (const char* one : {"topology.ranks_per_node=1", "validation.every_steps=0"}) all.emplace_back(one);
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

class Partition : public testing::Test {
 protected:
  void SetUp() override {
    if (std::string obstacle = network_obstacle(); !obstacle.empty()) GTEST_SKIP() << obstacle;
  }
  /// Both nodes train.
  void start(const std::vector<std::string>& more = {}) {
    network_.emplace(2);
    run_.emplace(2, settings(more), &*network_);
    run_->start();
    run_->first().wait_for_step(12, 150);
    wait_until([&] { return status(0).value("last_checkpoint", -1) > 0; }, 60, "a checkpoint");
  }
  nlohmann::json status(int node) {
    auto answer = run_->first().ganymede({"ctl", run_->folder(node), "status", "--json"});
    return answer.exit_code == 0 ? nlohmann::json::parse(answer.output) : nlohmann::json::object();
  }
  /// Node 1 serves no launchers: nobody listens at its side of the cut at the coordinator's port.
  void expect_one_coordinator() {
    auto command = network_->inside(1);
    command.insert(command.end(), {"cat", "/proc/net/tcp"});
    std::istringstream table(run_program(command, 20).output);
    for (std::string line; std::getline(table, line);) {
      bool listens = line.find(" 00000000:0000 0A ") != std::string::npos;
      EXPECT_FALSE(listens && line.find(":125C ") != std::string::npos) << line;  // 4700
    }
  }
  /// Goes on for some steps, is stopped, and has the losses and the state of a run that nobody disturbed.
  void expect_undisturbed_result(std::uint64_t after) {
    run_->first().wait_for_step(after + 5, 150);
    EXPECT_EQ(run_->first().ganymede({"ctl", run_->folder(0), "stop"}).exit_code, 0);
    EXPECT_THAT(run_->wait(), ElementsAre(75, 75)) << run_->output(0) << run_->output(1);
    UndisturbedRun(settings({fmt::format("run.steps={}", run_->first().last_step())})).expect_same(run_->first());
    EXPECT_TRUE(run_->first().leftovers().empty());
  }

  std::optional<TestNetwork> network_;
  std::optional<NodesRun> run_;
};

TEST_F(Partition, OfTenSecondsIsOutlasted) {
  start();
  network_->connect(1, false);
  auto ends = std::chrono::steady_clock::now() + out_for;
  std::uint64_t step = run_->first().last_step();
  while (std::chrono::steady_clock::now() < ends) {
    EXPECT_LE(run_->first().last_step(), step + 2) << "no rank goes on alone";
    expect_one_coordinator();
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
  }
  network_->connect(1, true);
  expect_undisturbed_result(run_->first().last_step());
}

TEST_F(Partition, InWhichAWorkerDiesOnEitherSideIsOutlasted) {
  start();
  network_->connect(1, false);
  for (int rank : {0, 1}) {
    int pid = find_service(run_->folder(rank), service::Kind::worker, rank);
    ASSERT_GT(pid, 0);
    ::kill(pid, SIGKILL);
  }
  std::this_thread::sleep_for(out_for);
  network_->connect(1, true);
  expect_undisturbed_result(run_->first().last_step());
}

TEST_F(Partition, ForGoodStopsBothSidesWithTheReasonAndTheRunGoesOnLater) {
  start({"launch.node_timeout_seconds=4"});
  network_->connect(1, false);
  wait_until(
      [&] {
        expect_one_coordinator();
        return run_->first().leftovers().empty();
      },
      40, "both sides end");
  EXPECT_THAT(run_->wait(), ElementsAre(75, 75)) << run_->output(0) << run_->output(1);
  EXPECT_THAT(run_->output(0), HasSubstr("The launcher of node 1 (10.77.0.2) has not answered"));
  EXPECT_THAT(run_->output(1), HasSubstr("The coordinator, node 0 at tcp://10.77.0.1:4700, has not answered"));
  std::uint64_t reported = run_->first().last_step();
  auto listed = run_->first().ganymede({"checkpoint", "list", run_->folder(0), "--json"});
  ASSERT_EQ(listed.exit_code, 0) << listed.output;
  int complete = 0;
  for (const auto& checkpoint : nlohmann::json::parse(listed.output)) {
    if (!checkpoint["complete"]) continue;  // parts that nobody committed
    ++complete;
    EXPECT_LE(checkpoint["step"], reported + 1) << "of a step that only one side knows";
    run_->first().state_hash(checkpoint["step"].get<std::uint64_t>());
  }
  EXPECT_GT(complete, 0);
  network_->connect(1, true);
  run_->start();
  expect_undisturbed_result(reported);
}

}  // namespace
}  // namespace ganymede::test
