#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "tests/multiprocess/elastic/elastic_run.h"

/// A lost node whose state replicas hold costs the step in work alone: what memory holds is saved before the world
/// forms again. No checkpoint is due in these runs.
namespace ganymede::test {
namespace {

using testing::HasSubstr;

std::vector<std::string> with_replicas(std::vector<std::string> more) {
  more.insert(more.end(), {"parallel.replicas=2", "checkpoint.every_steps=100000"});
  return elastic_settings(more);
}

void expect_undisturbed(const NodesRun& run) {
  static UndisturbedRun undisturbed(with_replicas({}));
  undisturbed.expect_same(run.first());
}

void wait_for_the_rescue(const NodesRun& run) { wait_for_text(run, "of the nodes that remain is saved first"); }

TEST(Rescue, TheNodesThatRemainLoseNoStep) {
  NodesRun run(2, with_replicas({"elastic.min_ranks=1"}));
  run.start();
  run.first().wait_for_step(45, 150);
  lose(run, 1);
  EXPECT_EQ(run.wait_node(0), 0) << run.output(0);
  std::uint64_t from = formed_again_from(run);
  EXPECT_GE(from, 45u);
  EXPECT_THAT(run.output(0), HasSubstr(fmt::format("Step {} is safe", from)));
  TrainingRun by_hand(with_replicas({"elastic.min_ranks=1"}));
  ASSERT_EQ(by_hand.train({"--steps", std::to_string(from)}), 0) << by_hand.output();
  ASSERT_EQ(by_hand.train({"--set", "parallel.ranks=1", "--set", "parallel.replicas=1"}), 0) << by_hand.output();
  EXPECT_EQ(run.first().losses(), by_hand.losses());
  EXPECT_EQ(run.first().state_hash(), by_hand.state_hash());
  expect_nothing_left(run);
}

TEST(Rescue, ASpareGoesOnFromTheMemoryOfTheReplica) {
  NodesRun run(3, with_replicas({"elastic.spare_nodes=1"}));
  run.start();
  run.first().wait_for_step(45, 150);
  lose(run, 1);
  wait_for_the_rescue(run);
  EXPECT_EQ(run.wait_node(0), 0) << run.output(0);
  EXPECT_EQ(run.wait_node(2), 0) << run.output(2);
  EXPECT_GE(formed_again_from(run), 45u);
  expect_undisturbed(run);
  expect_nothing_left(run);
}

TEST(Rescue, OneOfThreeReplicasIsEnough) {
  auto settings = elastic_settings({"elastic.min_ranks=1", "checkpoint.every_steps=100000"});
  settings.insert(settings.end(), {"parallel.ranks=3", "parallel.replicas=3"});
  NodesRun run(3, settings);
  run.start();
  run.first().wait_for_step(30, 150);
  auto launchers = run.first().status()["launchers"];
  for (int node : {1, 2}) ::kill(launchers[node]["keeper_pid"].get<int>(), SIGKILL);
  EXPECT_EQ(run.wait_node(0), 0) << run.output(0);
  EXPECT_GE(formed_again_from(run), 30u);
  expect_nothing_left(run);
}

TEST(Rescue, SurvivesTheEndOfTheLauncherThatLeadsIt) {
  NodesRun run(3, with_replicas({"elastic.spare_nodes=1"}));
  run.start();
  run.first().wait_for_step(45, 150);
  lose(run, 1);
  wait_for_the_rescue(run);
  auto launchers = run.first().status()["launchers"];
  ::kill(launchers[0]["pid"].get<int>(), SIGKILL);
  EXPECT_EQ(run.wait_node(0), 0) << run.output(0);
  EXPECT_EQ(run.wait_node(2), 0) << run.output(2);
  EXPECT_GE(formed_again_from(run), 45u);
  expect_undisturbed(run);
  expect_nothing_left(run);
}

}  // namespace
}  // namespace ganymede::test
