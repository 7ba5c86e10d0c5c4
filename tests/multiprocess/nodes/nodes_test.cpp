#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <thread>

#include "tests/support/network/nodes_run.h"
#include "tests/support/process_wait.h"
#include "tests/support/undisturbed_run.h"

/// A run over two nodes gives the bits of a run on one, whatever dies on either of them.
namespace ganymede::test {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> two_nodes(std::vector<std::string> more = {}) {
  auto settings = UndisturbedRun::settings(40, 20);
  settings.emplace_back("topology.ranks_per_node=1");
  settings.insert(settings.end(), more.begin(), more.end());
  return settings;
}

void expect_as_on_one_node(const NodesRun& run) {
  static UndisturbedRun on_one_node(40, 20);
  on_one_node.expect_same(run.first());
}

void expect_nothing_left(const NodesRun& run) {
  wait_until([&] { return run.first().leftovers().empty(); }, 10, "no process of any node is left");
}

/// Namespaces where they are allowed.
class RealNodes : public testing::Test {
 protected:
  void SetUp() override {
    if (std::string obstacle = network_obstacle(); !obstacle.empty()) GTEST_SKIP() << obstacle;
  }
};

TEST_F(RealNodes, TwoNodesOfOneRankGiveTheBitsOfOneNode) {
  TestNetwork network(2);
  NodesRun run(2, two_nodes(), &network);
  run.start();
  EXPECT_THAT(run.wait(), ElementsAre(0, 0)) << run.output(0) << run.output(1);
  expect_as_on_one_node(run);
  expect_nothing_left(run);
  EXPECT_GT(network.bytes(1).sent, 1'000'000u) << "parameters and gradients went over the cable";
}

TEST_F(RealNodes, TwoNodesOfTwoRanksGiveTheBitsOfOneNode) {
  TestNetwork network(2);
  auto settings = UndisturbedRun::settings(15, 0);
  settings.emplace_back("parallel.ranks=4");
  TrainingRun on_one_node(settings);
  ASSERT_EQ(on_one_node.train(), 0) << on_one_node.output();
  settings.emplace_back("topology.ranks_per_node=2");
  NodesRun run(2, settings, &network);
  run.start();
  EXPECT_THAT(run.wait(200), ElementsAre(0, 0)) << run.output(0) << run.output(1);
  EXPECT_EQ(run.first().losses(), on_one_node.losses());
  EXPECT_EQ(run.first().state_hash(), on_one_node.state_hash());
}

TEST_F(RealNodes, ASlowCableWithADelayChangesNoBit) {
  TestNetwork network(2);
  constexpr double milliseconds = 20;
  for (int node : {0, 1}) {
    network.limit(node, 50);
    network.delay(node, milliseconds);
  }
  NodesRun run(2, two_nodes(), &network);
  run.start();
  EXPECT_THAT(run.wait(), ElementsAre(0, 0)) << run.output(0) << run.output(1);
  expect_as_on_one_node(run);
  for (const auto& line : run.first().metrics()) EXPECT_GT(line["step_ms"], milliseconds) << line["step"];
}

TEST_F(RealNodes, ANodeWhoseCableIsOutForLongEndsTheRunOnBothSides) {
  TestNetwork network(2);
  NodesRun run(2, two_nodes({"run.steps=100000", "launch.node_timeout_seconds=4"}), &network);
  run.start();
  run.first().wait_for_step(3, 150);
  network.connect(1, false);
  EXPECT_THAT(run.wait(), ElementsAre(75, 75));
  EXPECT_THAT(run.output(0), HasSubstr("The launcher of node 1 (10.77.0.2) has not answered"));
  EXPECT_THAT(run.output(1), HasSubstr("The coordinator, node 0 at tcp://10.77.0.1:4700, has not answered"));
  expect_nothing_left(run);
}

TEST_F(RealNodes, ACableThatIsOutForAMomentChangesNothing) {
  TestNetwork network(2);
  NodesRun run(2, two_nodes(), &network);
  run.start();
  run.first().wait_for_step(5, 150);
  network.connect(1, false);
  std::this_thread::sleep_for(std::chrono::seconds(1));
  network.connect(1, true);
  EXPECT_THAT(run.wait(), ElementsAre(0, 0)) << run.output(0) << run.output(1);
  expect_as_on_one_node(run);
}

TEST(Nodes, ABatchSystemsWarningToAnyNodeEndsAllInOrder) {
  NodesRun run(2, two_nodes({"run.steps=100000"}));
  run.start();
  run.first().wait_for_step(3, 150);
  run.signal(1, SIGUSR2);
  EXPECT_THAT(run.wait(), ElementsAre(75, 75)) << run.output(0) << run.output(1);
  EXPECT_THAT(run.output(0), HasSubstr("checkpoint: step " + std::to_string(run.first().last_step()) + " in "));
  EXPECT_THAT(run.output(0), HasSubstr("\ngo on with: "));
  expect_nothing_left(run);
}

TEST(Nodes, ADrainByWayOfAnyNodeWaitsForItsEnd) {
  NodesRun run(2, two_nodes({"run.steps=100000"}));
  run.start();
  run.first().wait_for_step(3, 150);
  auto answer = run.first().ganymede({"ctl", run.folder(1), "drain"}, 120);
  EXPECT_EQ(answer.exit_code, 0) << answer.output;
  EXPECT_THAT(run.wait(), ElementsAre(75, 75)) << run.output(0) << run.output(1);
}

TEST(Nodes, AKilledWorkerOfAnotherNodeComesBack) {
  NodesRun run(2, two_nodes());
  run.start();
  run.first().wait_for_step(5, 150);
  ::kill(run.first().pid_of("worker", 1), SIGKILL);
  EXPECT_THAT(run.wait(), ElementsAre(0, 0)) << run.output(0) << run.output(1);
  EXPECT_THAT(run.output(1), HasSubstr("it is started again"));
  expect_as_on_one_node(run);
  expect_nothing_left(run);
}

class KilledLauncher : public testing::TestWithParam<int> {};

TEST_P(KilledLauncher, IsReplacedAndTheRunGoesOnFromMemory) {
  NodesRun run(2, two_nodes());
  run.start();
  run.first().wait_for_step(5, 150);
  auto launchers = run.first().status()["launchers"];
  ASSERT_EQ(launchers.size(), 2u);
  ::kill(launchers[static_cast<std::size_t>(GetParam())]["pid"].get<int>(), SIGKILL);
  EXPECT_THAT(run.wait(), ElementsAre(0, 0)) << run.output(0) << run.output(1);
  EXPECT_THAT(run.output(0), testing::Not(HasSubstr("going on from the checkpoint")));
  expect_as_on_one_node(run);
  expect_nothing_left(run);
}

INSTANTIATE_TEST_SUITE_P(Nodes, KilledLauncher, testing::Values(0, 1), [](const auto& tested) {
  return tested.param == 0 ? std::string("Coordinator") : std::string("OfAnotherNode");
});

class Interrupted : public testing::TestWithParam<int> {};

TEST_P(Interrupted, StopsAllNodesAndGoesOnLater) {
  NodesRun run(2, two_nodes());
  run.start();
  run.first().wait_for_step(5, 150);
  run.signal(GetParam(), SIGINT);
  EXPECT_THAT(run.wait(), Each(75)) << run.output(0) << run.output(1);
  expect_nothing_left(run);
  std::uint64_t stopped = run.first().last_step();
  EXPECT_LT(stopped, 40u);
  run.start();
  EXPECT_THAT(run.wait(), ElementsAre(0, 0)) << run.output(0) << run.output(1);
  expect_as_on_one_node(run);
}

INSTANTIATE_TEST_SUITE_P(Nodes, Interrupted, testing::Values(0, 1), [](const auto& tested) {
  return tested.param == 0 ? std::string("OnNode0") : std::string("OnAnotherNode");
});

}  // namespace
}  // namespace ganymede::test
