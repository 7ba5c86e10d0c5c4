#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/engine/test_world.h"

namespace ganymede::worker {
namespace {

config::Config fp8_world(int ranks, int expert_group = 1, config::Dtype compute = config::Dtype::fp32) {
  config::Config config = tiny_config();
  config.parallel.ranks = ranks;
  config.parallel.expert_group = expert_group;
  config.compute.dtype = compute;
  bool bf16 = compute == config::Dtype::bf16;
  config.wire.dense_gather = bf16 ? config::ParameterWire::bf16 : config::ParameterWire::fp32;
  config.wire.expert_gather = config::ParameterWire::fp8;
  return config;
}

struct Shape {
  int ranks, expert_group;
};
class Fp8Worlds : public testing::TestWithParam<Shape> {};

TEST_P(Fp8Worlds, FollowTheCurveOfOneRank) {
  TestWorld one(fp8_world(1)), other(fp8_world(GetParam().ranks, GetParam().expert_group));
  for (std::uint64_t s = 1; s <= 5; ++s) {
    double a = loss(one.step(s)), b = loss(other.step(s));
    EXPECT_NEAR(a, b, 1e-6 * a) << "step " << s;
  }
  EXPECT_NEAR(one.validate(5), other.validate(5), 1e-5);
}

// Four experts in two MoE layers: whole experts, one a rank, and (three ranks) cuts within the bucket elsewhere.
INSTANTIATE_TEST_SUITE_P(Shapes, Fp8Worlds,
                         testing::Values(Shape{2, 1}, Shape{3, 1}, Shape{2, 2}, Shape{4, 2}, Shape{6, 3}));

TEST(Fp8Gather, AsManyRanksAsRowsGiveTheBitsOfOneRank) {
  config::Config config = fp8_world(1);
  config.data.rows_per_step = 4;
  TestWorld one(config);
  config.parallel.ranks = 4;
  TestWorld four(config);
  for (std::uint64_t s = 1; s <= 4; ++s) EXPECT_EQ(one.step(s).record.checksum, four.step(s).record.checksum);
  EXPECT_EQ(one.parameters(), four.parameters());
}

TEST(Fp8Gather, MeasuredPeakIsThePredictedOne) {
  config::Config plain = fp8_world(1);
  plain.wire.expert_gather = config::ParameterWire::fp32;
  EXPECT_GT(TestWorld(fp8_world(1)).step(1).predicted_peak, TestWorld(plain).step(1).predicted_peak)
      << "what one rank holds whole is decoded into buffers";
  for (auto [ranks, group] : {std::pair{1, 1}, {3, 1}, {2, 2}}) {
    StepResult result = TestWorld(fp8_world(ranks, group)).step(1);
    EXPECT_EQ(result.measured_peak, result.predicted_peak);
    EXPECT_GE(result.pool_bytes, result.measured_peak);
  }
}

TEST(Fp8Gather, ComputesWithRoundedExpertsAndUpdatesTheExactOnes) {
  config::Config exact = fp8_world(2);
  exact.wire.expert_gather = config::ParameterWire::fp32;
  TestWorld rounded(fp8_world(2)), plain(exact);
  EXPECT_EQ(rounded.parameters(), plain.parameters());
  double a = loss(rounded.step(1)), b = loss(plain.step(1));
  EXPECT_NE(a, b);
  EXPECT_NEAR(a, b, 1e-3 * b);
}

TEST(Fp8Gather, LearnsWithEitherComputeType) {
  for (config::Dtype compute : {config::Dtype::fp32, config::Dtype::bf16}) {
    config::Config plain = fp8_world(2, 1, compute);
    plain.wire.expert_gather = plain.wire.dense_gather;
    double with = TestWorld(fp8_world(2, 1, compute)).losses(20).back(), without = TestWorld(plain).losses(20).back();
    EXPECT_LT(with, 0.8 * std::log(32.0));
    EXPECT_NEAR(with, without, 0.05 * without);  // a few steps of a tiny model: rounding moves the curve, not its shape
  }
}

}  // namespace
}  // namespace ganymede::worker
