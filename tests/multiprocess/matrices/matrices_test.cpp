#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cmath>
#include <random>

#include "tests/support/process_wait.h"
#include "tests/support/undisturbed_run.h"

/// Real runs with Muon or NorMuon for the matrices of layers, AdamW for the rest: whole matrices whose rows lie on
/// several ranks.
namespace ganymede::test {
namespace {

using ::testing::HasSubstr;

std::vector<std::string> settings(int steps, int every = 20) {
  std::vector<std::string> all = UndisturbedRun::settings(steps, every);
  for (const char* more : {"optimizer.name=muon", "optimizer.lr=0.02", "optimizer.group.rest.lr=3e-3",
                           "launch.restart_budget=100000", "validation.every_steps=0"})
    all.emplace_back(more);
  return all;
}

void expect_as_undisturbed(const TrainingRun& run) {
  static UndisturbedRun undisturbed(settings(60));
  undisturbed.expect_same(run);
}

class KilledService : public ::testing::TestWithParam<std::string> {};

TEST_P(KilledService, ComesBackWithoutAChangeOfTheResult) {
  TrainingRun run(settings(60));
  run.start();
  run.wait_for_step(8);
  ::kill(run.pid_of(GetParam(), 1), SIGKILL);
  run.wait_for_step(30);
  ::kill(run.pid_of(GetParam(), 0), SIGKILL);
  EXPECT_EQ(run.wait(), 0) << run.output();
  EXPECT_THAT(run.output(), HasSubstr("it is started again"));
  expect_as_undisturbed(run);
}

INSTANTIATE_TEST_SUITE_P(Matrices, KilledService, ::testing::Values("worker", "optimizer", "checkpoint"),
                         [](const auto& tested) { return tested.param; });

/// Any of the processes of an update at any moment of it, again and again.
TEST(Matrices, KillsAtAnyMomentChangeNoBit) {
  constexpr int steps = 60, kills = 16;
  TrainingRun run(settings(steps));
  run.start();
  run.wait_for_step(2);
  std::mt19937 random(11);
  for (int i = 0; i < kills; ++i) {
    const char* service = i % 3 == 0 ? "worker" : "optimizer";
    int rank = static_cast<int>(random() % 2);
    std::uint64_t step = run.last_step();
    if (step + 3 > steps) break;
    if (int pid = run.pid_of(service, rank); pid > 0) ::kill(pid, SIGKILL);
    run.wait_for_step(step + 2);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 100000));
  }
  EXPECT_EQ(run.wait(), 0) << run.output();
  expect_as_undisturbed(run);
}

/// Rows that travel between nodes, over gloo, instead of inside one.
TEST(Matrices, TheWayThatRowsTravelChangesNoBit) {
  auto two_nodes = settings(60);
  two_nodes.emplace_back("topology.ranks_per_node=1");
  TrainingRun run(two_nodes);
  ASSERT_EQ(run.train(), 0) << run.output();
  expect_as_undisturbed(run);
  bool between = false;
  nlohmann::json last = run.metrics().back();
  for (const auto& line : last["traffic"])
    between =
        between || (line["operation"].get<std::string>().starts_with("update_") && line["bytes_between_nodes"] > 0);
  EXPECT_TRUE(between);
}

/// newton_schulz.where = optimizer: the same update through CBLAS, within the rounding of fp32, whoever is killed.
TEST(Matrices, TheOptimizerServerOrthogonalisesAsWell) {
  auto by_server = settings(60);
  by_server.emplace_back("newton_schulz.where=optimizer");
  TrainingRun run(by_server);
  run.start();
  run.wait_for_step(8);
  ::kill(run.pid_of("optimizer", 1), SIGKILL);
  run.wait_for_step(20);
  ::kill(run.pid_of("worker", 0), SIGKILL);
  EXPECT_EQ(run.wait(), 0) << run.output();
  UndisturbedRun(by_server).expect_same(run);
  TrainingRun by_worker(settings(60));
  ASSERT_EQ(by_worker.train(), 0) << by_worker.output();
  auto expected = by_worker.losses(), found = run.losses();
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i)
    ASSERT_LE(std::abs(found[i] - expected[i]), 1e-3 * expected[i]) << "step " << i + 1;
}

/// A matrix is updated as a whole by the optimizer server of its owner, wherever it was orthogonalised.
class Normuon : public ::testing::TestWithParam<const char*> {};

TEST_P(Normuon, KilledServicesChangeNoBit) {
  auto normuon = settings(40);
  for (const char* more : {"optimizer.name=normuon", "optimizer.lr=3e-3", GetParam()}) normuon.emplace_back(more);
  TrainingRun run(normuon);
  run.start();
  for (std::uint64_t step : {4, 10, 16, 22}) {
    run.wait_for_step(step);
    ::kill(run.pid_of(step % 3 == 1 ? "optimizer" : "worker", static_cast<int>(step / 2 % 2)), SIGKILL);
  }
  EXPECT_EQ(run.wait(), 0) << run.output();
  UndisturbedRun(normuon).expect_same(run);
  EXPECT_LT(run.losses().back(), run.losses().front() - 0.5);
}

INSTANTIATE_TEST_SUITE_P(Matrices, Normuon,
                         ::testing::Values("newton_schulz.where=worker", "newton_schulz.where=optimizer"),
                         [](const auto& tested) { return std::string(tested.param).substr(20); });

class OtherWorld : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Matrices, OtherWorld, ::testing::Values("muon", "normuon"),
                         [](const auto& tested) { return std::string(tested.param); });

/// The state of both optimizers goes through a checkpoint into a world with other shards.
TEST_P(OtherWorld, ACheckpointGoesOn) {
  auto with = [](int steps) {
    auto all = settings(steps);
    all.push_back(std::string("optimizer.name=") + GetParam());
    return all;
  };
  TrainingRun whole(with(40)), half(with(20));
  ASSERT_EQ(whole.train(), 0) << whole.output();
  ASSERT_EQ(half.train(), 0) << half.output();
  auto three_ranks = with(40);
  three_ranks.emplace_back("parallel.ranks=3");
  TrainingRun three(three_ranks);
  ASSERT_EQ(three.train({"--from", half.folder()}), 0) << three.output();
  auto expected = whole.losses(), found = three.losses();
  ASSERT_EQ(expected.size(), 40u);
  ASSERT_EQ(found.size(), 20u);
  for (std::size_t i = 0; i < found.size(); ++i)
    ASSERT_LE(std::abs(found[i] - expected[i + 20]), 1e-5 * expected[i + 20]) << "step " << i + 21;
}

TEST(Matrices, ACheckpointOfAnotherOptimizerIsRefusedInOneSentence) {
  auto with_adamw = UndisturbedRun::settings(10, 10);
  TrainingRun adamw(with_adamw);
  ASSERT_EQ(adamw.train(), 0) << adamw.output();
  TrainingRun muon(settings(20, 10));
  EXPECT_EQ(muon.train({"--from", adamw.folder()}), 2);
  EXPECT_THAT(muon.output(), HasSubstr("was made with optimizer adamw: go on with that one"));
}

TEST(Matrices, StateThatACheckpointDoesNotHaveIsNamed) {
  TrainingRun muon(settings(10, 10));
  ASSERT_EQ(muon.train(), 0) << muon.output();
  auto other = settings(20, 10);
  for (const char* more : {"optimizer.group.more.match=[\"*.q_proj.weight\"]", "optimizer.group.more.optimizer=adamw"})
    other.emplace_back(more);
  TrainingRun changed(other);
  EXPECT_EQ(changed.train({"--from", muon.folder()}), 1);
  EXPECT_THAT(changed.output(), HasSubstr("not the first_moment that optimizer adamw needs of model.layers."));
}

}  // namespace
}  // namespace ganymede::test
