#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "tests/multiprocess/elastic/elastic_run.h"

/// A run that loses a node goes on from its last checkpoint: with a spare in its place, with the same node started
/// anew, or with the nodes that remain.
namespace ganymede::test {
namespace {

using testing::HasSubstr;
using testing::Not;

void expect_undisturbed(const NodesRun& run) {
  static UndisturbedRun undisturbed(elastic_settings({}));
  undisturbed.expect_same(run.first());
}

TEST(Elastic, TheNodesThatRemainGoOnFromTheLastCheckpoint) {
  NodesRun run(2, elastic_settings({"elastic.min_ranks=1"}));
  run.start();
  run.first().wait_for_step(45, 150);
  lose(run, 1);
  EXPECT_EQ(run.wait_node(0), 0) << run.output(0);
  EXPECT_THAT(run.output(0), HasSubstr("the world forms again with 1 rank on node 0"));
  std::uint64_t from = formed_again_from(run);
  EXPECT_GE(from, 20u);
  TrainingRun by_hand(elastic_settings({"elastic.min_ranks=1"}));
  ASSERT_EQ(by_hand.train({"--steps", std::to_string(from)}), 0) << by_hand.output();
  ASSERT_EQ(by_hand.train({"--set", "parallel.ranks=1"}), 0) << by_hand.output();
  EXPECT_EQ(run.first().losses(), by_hand.losses());
  EXPECT_EQ(run.first().state_hash(), by_hand.state_hash());
  expect_nothing_left(run);
}

TEST(Elastic, ASpareTakesThePlaceOfALostNodeAndTheBitsStay) {
  NodesRun run(3, elastic_settings({"elastic.spare_nodes=1"}));
  run.start();
  run.first().wait_for_step(45, 150);
  EXPECT_THAT(run.output(0), HasSubstr("node 2 (127.0.0.3) waits as a spare"));
  lose(run, 1);
  EXPECT_EQ(run.wait_node(0), 0) << run.output(0);
  EXPECT_EQ(run.wait_node(2), 0) << run.output(2);
  EXPECT_THAT(run.output(0), HasSubstr("the world forms again with 2 ranks on nodes 0, 2"));
  expect_undisturbed(run);
  expect_nothing_left(run);
  bool noted = false;
  for (const auto& line : run.first().metrics()) {
    auto events = line.value("restart_events", nlohmann::json::array());
    for (const auto& event : events) {
      if (event["process"] != "the world") continue;
      noted = true;
      EXPECT_THAT(event["cause"].get<std::string>(), HasSubstr("node 1 (127.0.0.2) has not answered"));
      EXPECT_GE(event["detect_ms"].get<double>(), 5000);
    }
  }
  EXPECT_TRUE(noted) << "that the world formed again is an event";
}

TEST(Elastic, ANodeThatIsStartedAnewTakesItsOldPlace) {
  NodesRun run(2, elastic_settings({"elastic.min_ranks=2"}));
  run.start();
  run.first().wait_for_step(45, 150);
  lose(run, 1);
  run.start_node(1);
  EXPECT_EQ(run.wait_node(0), 0) << run.output(0);
  EXPECT_EQ(run.wait_node(1), 0) << run.output(1);
  EXPECT_THAT(run.output(0), HasSubstr("the world forms again with 2 ranks on nodes 0, 1"));
  expect_undisturbed(run);
}

TEST(Elastic, TooFewRanksEndTheRunSoThatItCanGoOn) {
  NodesRun run(2, elastic_settings({"elastic.min_ranks=2"}));
  run.start();
  run.first().wait_for_step(25, 150);
  lose(run, 1);
  EXPECT_EQ(run.wait_node(0), 75) << run.output(0);
  EXPECT_THAT(run.output(0), HasSubstr("cannot hold 2 ranks or more"));
  EXPECT_THAT(run.output(0), Not(HasSubstr("forms again")));
  expect_nothing_left(run);
}

TEST(Elastic, StatesThatDoNotBelongTogetherGoBackToTheCheckpoint) {
  NodesRun run(2, elastic_settings({}));
  run.start();
  run.first().wait_for_step(45, 150);
  auto launchers = run.first().status()["launchers"];
  ::kill(launchers[1]["keeper_pid"].get<int>(), SIGKILL);
  run.wait_node(1);
  run.start_node(1);
  // The coordinator that comes back does not know the node that was there; its segments are new.
  ::kill(launchers[0]["pid"].get<int>(), SIGKILL);
  EXPECT_EQ(run.wait_node(0), 0) << run.output(0);
  EXPECT_EQ(run.wait_node(1), 0) << run.output(1);
  EXPECT_THAT(run.output(0), HasSubstr("the world forms again with 2 ranks on nodes 0, 1"));
  expect_undisturbed(run);
  expect_nothing_left(run);
}

TEST(Elastic, ANodeThatWasCutOffWaitsAsASpare) {
  if (std::string obstacle = network_obstacle(); !obstacle.empty()) GTEST_SKIP() << obstacle;
  TestNetwork network(2);
  NodesRun run(2, elastic_settings({"elastic.min_ranks=1", "run.steps=600"}), &network);
  run.start();
  run.first().wait_for_step(45, 150);
  network.connect(1, false);
  wait_for_text(run, "the world forms again with 1 rank");
  network.connect(1, true);
  wait_for_text(run, "waits as a spare");
  EXPECT_EQ(run.wait_node(0, 200), 0) << run.output(0);
  EXPECT_EQ(run.wait_node(1), 0) << run.output(1);
  expect_nothing_left(run);
}

}  // namespace
}  // namespace ganymede::test
