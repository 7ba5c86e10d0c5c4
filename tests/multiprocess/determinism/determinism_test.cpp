#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/training_run.h"

/// The curve of a run is a pure function of configuration and data: whenever, and on however many ranks, it is run.
namespace ganymede::test {
namespace {

std::vector<std::string> world(int ranks, int rows = 12) {
  return {"parallel.ranks=" + std::to_string(ranks),
          "data.rows_per_step=" + std::to_string(rows),
          "run.steps=50",
          "checkpoint.every_steps=0",
          "compute.threads=1",
          "validation.every_steps=25"};
}

/// The losses of both agree bit for bit.
void expect_same_bits(const TrainingRun& a, const TrainingRun& b) {
  auto first = a.losses(), second = b.losses();
  ASSERT_EQ(first.size(), second.size());
  for (std::size_t i = 0; i < first.size(); ++i) ASSERT_EQ(first[i], second[i]) << "step " << i + 1;
}

void expect_close(const TrainingRun& a, const TrainingRun& b, double relative) {
  auto first = a.losses(), second = b.losses();
  ASSERT_EQ(first.size(), second.size());
  for (std::size_t i = 0; i < first.size(); ++i)
    ASSERT_LE(std::abs(first[i] - second[i]), relative * std::abs(first[i])) << "step " << i + 1;
}

TEST(Determinism, SameRunTwiceHasTheSameLossesAndTheSameState) {
  TrainingRun first(world(2)), second(world(2));
  ASSERT_EQ(first.train(), 0);
  ASSERT_EQ(second.train(), 0);
  EXPECT_EQ(first.losses().size(), 50u);
  expect_same_bits(first, second);
  EXPECT_EQ(first.state_hash(), second.state_hash());
}

TEST(Determinism, RunLearns) {
  TrainingRun run(world(1));
  ASSERT_EQ(run.train(), 0);
  auto losses = run.losses();
  EXPECT_NEAR(losses.front(), std::log(256.0), 0.2);  // at first every byte is as likely as any other
  EXPECT_LT(losses.back(), 3.5);
  auto last = run.metrics().back();
  EXPECT_TRUE(last.contains("validation_loss"));
  EXPECT_LT(last["validation_loss"].get<double>(), 3.6);
}

class WorldSize : public ::testing::TestWithParam<int> {};

TEST_P(WorldSize, FollowsTheCurveOfOneRank) {
  TrainingRun one(world(1)), many(world(GetParam()));
  ASSERT_EQ(one.train(), 0);
  ASSERT_EQ(many.train(), 0);
  expect_close(one, many, 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Determinism, WorldSize, ::testing::Values(2, 3, 4));

TEST(Determinism, AsManyRanksAsRowsHaveTheBitsOfOneRank) {
  TrainingRun one(world(1, 3)), many(world(3, 3));
  ASSERT_EQ(one.train(), 0);
  ASSERT_EQ(many.train(), 0);
  expect_same_bits(one, many);
  EXPECT_EQ(one.state_hash(), many.state_hash());
}

TEST(Determinism, InitialStateIsTheSameForAllWorlds) {
  // A step that changes nothing, so that the checkpoint after it holds the initial values.
  auto frozen = [](int ranks) {
    auto settings = world(ranks);
    settings.insert(settings.end(), {"run.steps=1", "optimizer.lr=0", "model.bias_update_rate=0"});
    return settings;
  };
  TrainingRun one(frozen(1));
  ASSERT_EQ(one.train(), 0);
  for (int ranks : {2, 3, 4}) {
    TrainingRun many(frozen(ranks));
    ASSERT_EQ(many.train(), 0);
    EXPECT_EQ(one.state_hash(), many.state_hash()) << ranks << " ranks";
  }
}

TEST(Determinism, ExpertGroupFollowsTheCurveOfOneRank) {
  auto split = world(2);
  split.emplace_back("parallel.expert_group=2");
  TrainingRun one(world(1)), many(split);
  ASSERT_EQ(one.train(), 0);
  ASSERT_EQ(many.train(), 0);
  expect_close(one, many, 1e-6);
}

}  // namespace
}  // namespace ganymede::test
