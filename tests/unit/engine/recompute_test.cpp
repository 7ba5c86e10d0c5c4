#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/plan/kept.h"
#include "common/plan/plan.h"
#include "tests/unit/engine/test_world.h"

namespace ganymede::worker {
namespace {

using config::Recompute;

struct World {
  int ranks, expert_group;
  config::Dtype dtype = config::Dtype::fp32;
};

config::Config with(const World& world, Recompute recompute) {
  config::Config config = tiny_config();
  config.parallel.ranks = world.ranks;
  config.parallel.expert_group = world.expert_group;
  config.compute.dtype = world.dtype;
  auto wire = world.dtype == config::Dtype::bf16 ? config::ParameterWire::bf16 : config::ParameterWire::fp32;
  config.wire.dense_gather = config.wire.expert_gather = wire;
  config.recompute = recompute;
  return config;
}

std::size_t recomputations(const config::Config& config) {
  auto plan = plan::build(config, placement::build(config, 0), plan::PlanKind::train);
  return static_cast<std::size_t>(std::count_if(plan.operations.begin(), plan.operations.end(), [](const auto& o) {
    return o.kind == plan::OperationKind::recompute;
  }));
}

class RecomputeModes : public testing::TestWithParam<World> {};

TEST_P(RecomputeModes, GiveTheSameBits) {
  TestWorld full(with(GetParam(), Recompute::full));
  std::vector<double> expected = full.losses(3);
  for (Recompute mode : {Recompute::selective, Recompute::none}) {
    TestWorld other(with(GetParam(), mode));
    EXPECT_EQ(other.losses(3), expected) << static_cast<int>(mode);
    EXPECT_EQ(other.parameters(), full.parameters()) << static_cast<int>(mode);
    EXPECT_EQ(other.gradients(), full.gradients()) << static_cast<int>(mode);
  }
}

TEST_P(RecomputeModes, NeedTheMemoryThatThePlanSays) {
  std::int64_t before = 0;
  for (Recompute mode : {Recompute::full, Recompute::selective, Recompute::none}) {
    StepResult result = TestWorld(with(GetParam(), mode)).step(1);
    EXPECT_EQ(result.measured_peak, result.predicted_peak) << static_cast<int>(mode);
    EXPECT_GT(result.predicted_peak, before) << static_cast<int>(mode);
    before = result.predicted_peak;
  }
}

INSTANTIATE_TEST_SUITE_P(Worlds, RecomputeModes,
                         testing::Values(World{1, 1}, World{2, 1}, World{2, 2}, World{1, 1, config::Dtype::bf16}),
                         [](const auto& test) {
                           return "Ranks" + std::to_string(test.param.ranks) + "ExpertGroup" +
                                  std::to_string(test.param.expert_group) +
                                  (test.param.dtype == config::Dtype::bf16 ? "Bf16" : "");
                         });

TEST(Recompute, NoneHasNoOperationOfItsOwn) {
  EXPECT_GT(recomputations(with({1, 1}, Recompute::full)), 0u);
  EXPECT_EQ(recomputations(with({1, 1}, Recompute::selective)), recomputations(with({1, 1}, Recompute::full)));
  EXPECT_EQ(recomputations(with({1, 1}, Recompute::none)), 0u);
}

TEST(Recompute, KeepsOfAnMoeLayerWhatBackwardNeeds) {
  config::Config config = with({1, 1}, Recompute::none);
  const auto& model = config.model;
  auto kept = plan::kept_activations(config, model.layers - 1);
  std::int64_t tokens = config.data.seq_len;
  EXPECT_EQ(kept.parts.back().what, plan::Kept::gate_up);
  EXPECT_THAT(kept.parts.back().shape, testing::ElementsAre(tokens * model.top_k, 2 * model.expert_ffn));
  EXPECT_GE(kept.bytes, tokens * 4 * (3 * model.hidden + model.heads * (model.qk_dim + model.v_dim)));
  EXPECT_EQ(plan::kept_activations(with({1, 1}, Recompute::full), model.layers - 1).bytes, 0);
}

}  // namespace
}  // namespace ganymede::worker
