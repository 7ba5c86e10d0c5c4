#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "tests/multiprocess/elastic/elastic_run.h"
#include "tests/support/process_wait.h"

/// `ctl rescale`: the world forms again with other ranks or without a node, and no step is lost.
namespace ganymede::test {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string ctl(const TrainingRun& run, std::vector<std::string> words, int expected = 0) {
  words.insert(words.begin(), {"ctl", run.folder()});
  auto answer = run.ganymede(words, 120);
  EXPECT_EQ(answer.exit_code, expected) << answer.output;
  return answer.output;
}

std::vector<std::string> one_machine(int steps) {
  auto all = UndisturbedRun::settings(steps, 100000);
  all.insert(all.end(), {"optimizer.decay_steps=" + std::to_string(steps), "checkpoint.keep_last=20"});
  return all;
}

/// The steps from which the worlds after the first one went on.
std::vector<std::uint64_t> left_at(const std::string& output) {
  std::vector<std::uint64_t> steps;
  std::regex line("again from the checkpoint of step ([0-9]+)");
  for (std::sregex_iterator at(output.begin(), output.end(), line), end; at != end; ++at)
    steps.push_back(std::stoull((*at)[1]));
  return steps;
}

TEST(Rescale, ToMoreRanksAndBackHasTheBitsOfRunsByHand) {
  TrainingRun run(one_machine(500));
  run.start();
  run.wait_for_step(20);
  EXPECT_THAT(ctl(run, {"rescale", "--ranks", "3"}), HasSubstr("2 ranks on 1 node → 3 ranks on 1 node"));
  std::uint64_t step = run.last_step();
  run.wait_for_step(step + 10);
  ctl(run, {"rescale"});
  EXPECT_EQ(run.wait(120), 0) << run.output();
  auto steps = left_at(run.output());
  ASSERT_EQ(steps.size(), 2u) << run.output();
  TrainingRun by_hand(one_machine(500));
  ASSERT_EQ(by_hand.train({"--steps", std::to_string(steps[0])}), 0) << by_hand.output();
  ASSERT_EQ(by_hand.train({"--steps", std::to_string(steps[1]), "--set", "parallel.ranks=3"}), 0) << by_hand.output();
  ASSERT_EQ(by_hand.train({}), 0) << by_hand.output();
  EXPECT_EQ(run.losses(), by_hand.losses());
  EXPECT_EQ(run.state_hash(), by_hand.state_hash());
  EXPECT_TRUE(run.leftovers().empty());
}

TEST(Rescale, SurvivesTheLauncherAndGivesWayToAStop) {
  TrainingRun run(one_machine(100000));
  run.start();
  run.wait_for_step(20);
  ctl(run, {"rescale", "--ranks", "3", "--wait", "0"});
  ::kill(run.status()["launchers"][0]["pid"].get<int>(), SIGKILL);
  wait_until([&] { return run.output().find("The world forms again from") != std::string::npos; }, 60, run.output());
  run.wait_for_state("training");
  EXPECT_EQ(run.status()["cells"].size(), 3u);
  ctl(run, {"rescale", "--ranks", "2", "--wait", "0"});
  ctl(run, {"stop"});
  EXPECT_EQ(run.wait(), 75) << run.output();
  EXPECT_TRUE(run.leftovers().empty());
}

/// Where the world before is left, and the new one has no segments yet; and in the middle of `--now`.
TEST(Rescale, SurvivesTheLauncherBetweenTwoWorlds) {
  for (bool now : {false, true}) {
    TrainingRun run(one_machine(100000));
    run.start();
    run.wait_for_step(20);
    int launcher = run.status()["launchers"][0]["pid"].get<int>();
    ctl(run, now ? std::vector<std::string>{"rescale", "--ranks", "3", "--wait", "0", "--now"}
                 : std::vector<std::string>{"rescale", "--ranks", "3", "--wait", "0"});
    std::string moment = now ? "is saved first" : "the world forms again with 3 ranks on node 0";
    wait_until([&] { return run.output().find(moment) != std::string::npos; }, 60, moment);
    ::kill(launcher, SIGKILL);
    wait_until([&] { return run.status()["state"] == "training" && run.status()["cells"].size() == 3; }, 60, "3 ranks");
    ctl(run, {"stop"});
    EXPECT_EQ(run.wait(), 75) << run.output();
    EXPECT_TRUE(run.leftovers().empty());
  }
}

TEST(Rescale, ThatCannotBeIsRefusedAndChangesNothing) {
  TrainingRun run(one_machine(400));
  run.start();
  run.wait_for_step(20);
  EXPECT_THAT(ctl(run, {"rescale"}, 2), HasSubstr("Nothing would change"));
  EXPECT_THAT(ctl(run, {"rescale", "--ranks", "5", "--expert-group", "3"}, 2), HasSubstr("parallel.expert_group"));
  EXPECT_THAT(ctl(run, {"rescale", "--without", "0"}, 2), HasSubstr("coordinator"));
  EXPECT_THAT(ctl(run, {"rescale", "--without", "1"}, 2), HasSubstr("does not take part"));
  EXPECT_THAT(ctl(run, {"rescale", "--ranks", "none"}, 2), HasSubstr("--ranks"));
  EXPECT_EQ(run.wait(), 0) << run.output();
  EXPECT_THAT(run.output(), Not(HasSubstr("forms again")));
}

/// A spare takes the place of a node that a person wants to be left; that one waits and is not taken in again.
TEST(Rescale, ANodeIsLeftAndTheBitsStay) {
  auto settings = elastic_settings({"elastic.spare_nodes=1", "checkpoint.every_steps=100000"});
  NodesRun run(3, settings);
  run.start();
  run.first().wait_for_step(30, 150);
  EXPECT_THAT(ctl(run.first(), {"rescale", "--without", "1", "--now"}), HasSubstr("the run trains at step"));
  wait_for_text(run, "was left on request");
  EXPECT_THAT(ctl(run.first(), {"rescale", "--without", "2"}, 2), HasSubstr("cannot hold 2 ranks"));
  EXPECT_EQ(run.wait_node(0), 0) << run.output(0);
  for (int node : {1, 2}) EXPECT_EQ(run.wait_node(node), 0) << run.output(node);
  EXPECT_GE(formed_again_from(run), 30u);
  EXPECT_THAT(run.output(0), HasSubstr("the world forms again with 2 ranks on nodes 0, 2"));
  UndisturbedRun(elastic_settings({"checkpoint.every_steps=100000"})).expect_same(run.first());
  expect_nothing_left(run);
}

}  // namespace
}  // namespace ganymede::test
