#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "common/base/hash.h"
#include "services/optimizer/plugin.h"
#include "services/optimizer/server.h"
#include "services/optimizer/update_engine.h"
#include "tests/unit/engine/on_ranks.h"
#include "tests/unit/engine/test_world.h"

/// What optimizers ask to know of a step, as it lies in the cells after the vote.
namespace ganymede::worker {
namespace {

constexpr std::uint64_t world_hash = 42;  // of TestWorld's engines

const optimizer::Plugin& normed() {
  static const optimizer::Plugin plugin = optimizer::load_plugin(NORMED_PLUGIN);
  return plugin;
}

config::Config asking(const config::Parallel& parallel) {
  config::Config config = tiny_config();
  config.parallel = parallel;
  config.optimizer.name = "normed";
  return config;
}

std::vector<placement::OptimizerFacts> facts() { return {normed().facts("normed")}; }

std::vector<double> reductions(TestWorld& world, int rank = 0) {
  auto values = world.cell(rank).epoch().reductions;
  return {values.begin(), values.end()};
}

/// One step without its update.
StepResult trained(TestWorld& world, std::uint64_t step) {
  std::vector<StepResult> results(static_cast<std::size_t>(world.size()));
  for (const auto& fault : on_ranks(world.size(), [&](int rank) {
         world.cell(rank).serve(step);
         results[static_cast<std::size_t>(rank)] = world.engine(rank).train(step);
       }))
    if (fault) std::rethrow_exception(fault);
  return results[0];
}

class Reductions : public testing::TestWithParam<config::Parallel> {};

TEST_P(Reductions, AreThoseOfOneRankAndTheSameBitsOnAll) {
  TestWorld one(asking({1, 1, 1}), facts()), world(asking(GetParam()), facts());
  StepResult alone = trained(one, 1), result = trained(world, 1);
  auto expected = reductions(one), ours = reductions(world);
  const auto& layout = world.cell(0).placement().reductions;
  ASSERT_EQ(static_cast<std::int64_t>(ours.size()), layout.elements);
  EXPECT_EQ(layout.maxima, 3 * 2) << "layers, heads";
  for (std::size_t i = 0; i < ours.size(); ++i) EXPECT_NEAR(ours[i], expected[i], 1e-4 * std::abs(expected[i])) << i;
  EXPECT_NEAR(result.attention_logit_max, *std::max_element(ours.begin(), ours.begin() + layout.maxima), 0);
  for (int rank = 0; rank < world.size(); ++rank) {
    EXPECT_EQ(reductions(world, rank), ours);
    const auto& record = world.cell(rank).control().block->record_of(1);
    EXPECT_TRUE(record.intact());
    EXPECT_EQ(record.reductions_hash, hash64(std::as_bytes(std::span(ours))));
    EXPECT_EQ(record.swap_reductions_hash, 0u);
  }
  EXPECT_GT(alone.attention_logit_max, 0);
}

/// Each shard once, of the gradients as they lie in the segments.
TEST_P(Reductions, SquaresAreOfTheWholeGradientAndTogetherThatOfTheNorm) {
  TestWorld world(asking(GetParam()), facts());
  StepResult result = trained(world, 1);
  auto ours = reductions(world);
  auto gradients = world.gradients();
  const placement::Placement& placement = world.cell(0).placement();
  double all = 0;
  for (std::size_t i = 0; i < placement.parameters.size(); ++i) {
    const auto* square = placement.reductions.find(placement::ReductionKind::gradient_square, static_cast<int>(i));
    if (square == nullptr) continue;
    double expected = 0;
    for (double g : gradients[placement.parameters[i].name]) expected += g * g;
    EXPECT_NEAR(ours[static_cast<std::size_t>(square->first)], expected, 1e-12 * expected + 1e-300);
    all += ours[static_cast<std::size_t>(square->first)];
  }
  EXPECT_NEAR(std::sqrt(all), result.record.grad_norm, 1e-12 * result.record.grad_norm);
}

/// The plugin's slot is what it saw, of every element that a rank holds.
TEST_P(Reductions, ReachThePluginOnEveryRank) {
  TestWorld world(asking(GetParam()), facts());
  trained(world, 1);
  auto ours = reductions(world);
  std::size_t seen = 0;
  for (int rank = 0; rank < world.size(); ++rank) {
    TestCell& cell = world.cell(rank);
    optimizer::EngineOptions options;
    options.optimizer_hash = world_hash;
    optimizer::CellMemory memory = optimizer::attach(cell);
    optimizer::UpdateEngine server(cell.placement(), {normed().table}, memory, options);
    while (server.advance().action.kind != step_protocol::UpdateActionKind::await_decision) continue;
    for (const placement::OwnedRange& range : cell.placement().owned) {
      const auto* square = cell.placement().reductions.find(placement::ReductionKind::gradient_square, range.parameter);
      for (std::int64_t i = 0; square != nullptr && i < range.count; ++i, ++seen)
        ASSERT_EQ(memory.state[0][static_cast<std::size_t>(range.state_offset[0] + i)],
                  static_cast<float>(ours[static_cast<std::size_t>(square->first)]));
    }
  }
  EXPECT_GT(seen, 10000u);
}

INSTANTIATE_TEST_SUITE_P(Worlds, Reductions,
                         testing::Values(config::Parallel{1, 1, 1}, config::Parallel{2, 1, 1},
                                         config::Parallel{3, 1, 1}, config::Parallel{4, 2, 1},
                                         config::Parallel{4, 1, 2}, config::Parallel{6, 2, 1}),
                         [](const auto& world) {
                           return "Ranks" + std::to_string(world.param.ranks) + "Group" +
                                  std::to_string(world.param.expert_group) + "Replicas" +
                                  std::to_string(world.param.replicas);
                         });

TEST(ReductionsOfAStep, DependNeitherOnMicroBatchesNorOnWhatIsRecomputed) {
  config::Config config = asking({2, 1, 1});
  TestWorld whole(config, facts());
  trained(whole, 1);
  for (config::Recompute mode : {config::Recompute::full, config::Recompute::selective, config::Recompute::none}) {
    for (int rows : {1, 3}) {
      config.recompute = mode;
      config.micro_batch.rows = rows;
      TestWorld world(config, facts());
      trained(world, 1);
      EXPECT_EQ(reductions(world), reductions(whole)) << rows << " rows";
    }
  }
}

TEST(ReductionsOfAStep, ALogitThatIsNotFiniteSkipsIt) {
  TestWorld two(asking({2, 1, 1}), facts());
  two.cell(1).master()[3] = std::numeric_limits<float>::infinity();
  two.cell(1).publish_working_copy(0);
  StepResult result = trained(two, 1);
  EXPECT_EQ(result.record.apply, 0u);
  EXPECT_TRUE(std::isnan(result.attention_logit_max));
  EXPECT_EQ(result.record.reductions_hash, two.cell(1).control().block->record_of(1).reductions_hash);
}

TEST(ReductionsOfAStep, ThereAreNoneWhereNobodyAsks) {
  TestWorld two(tiny_config());
  StepResult result = two.step(1);
  EXPECT_TRUE(std::isnan(result.attention_logit_max));
  EXPECT_EQ(result.record.reductions_hash, 0u);
  EXPECT_TRUE(two.cell(0).epoch().reductions.empty());
  EXPECT_FALSE(two.cell(0).segment("state.0").layout().has("reductions"));
}

}  // namespace
}  // namespace ganymede::worker
