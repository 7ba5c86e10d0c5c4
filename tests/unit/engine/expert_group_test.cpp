#include <gtest/gtest.h>

#include "common/plan/exchange_form.h"
#include "common/plan/traffic.h"
#include "tests/unit/engine/test_world.h"

/// Tokens that travel to experts of other ranks: the form of the exchange, and what is kept, change no bit.
namespace ganymede::worker {
namespace {

using config::Recompute;

struct Case {
  int ranks, expert_group;
  Recompute recompute = Recompute::full;
  config::Dtype dtype = config::Dtype::fp32;
};

/// Four groups, each with a choice: every place of the group has as many of each token's experts.
config::Config of(const Case& c, bool even) {
  config::Config config = tiny_config();
  config.parallel.ranks = c.ranks;
  config.parallel.expert_group = c.expert_group;
  config.model.experts = 8;
  config.model.top_k = config.model.router_groups = 4;
  config.recompute = c.recompute;
  config.compute.dtype = c.dtype;
  auto wire = c.dtype == config::Dtype::bf16 ? config::ParameterWire::bf16 : config::ParameterWire::fp32;
  config.wire.dense_gather = config.wire.expert_gather = wire;
  config.expert_exchange = even ? config::ExpertExchange::automatic : config::ExpertExchange::uneven;
  return config;
}

std::string name_of(const Case& c) {
  const char* modes[] = {"Full", "Selective", "None"};
  return "Ranks" + std::to_string(c.ranks) + "ExpertGroup" + std::to_string(c.expert_group) +
         modes[static_cast<int>(c.recompute)] + (c.dtype == config::Dtype::bf16 ? "Bf16" : "");
}

class ExpertGroups : public testing::TestWithParam<Case> {};

TEST_P(ExpertGroups, BothFormsOfTheExchangeGiveTheSameBits) {
  TestWorld even(of(GetParam(), true)), uneven(of(GetParam(), false));
  for (std::uint64_t step = 1; step <= 3; ++step) {
    EXPECT_EQ(even.step(step).record.checksum, uneven.step(step).record.checksum);
    EXPECT_EQ(even.gradients(), uneven.gradients());
  }
  EXPECT_EQ(even.parameters(), uneven.parameters());
  EXPECT_EQ(even.validate(3), uneven.validate(3));
}

TEST_P(ExpertGroups, WhatIsKeptForBackwardChangesNoBit) {
  for (bool form : {true, false}) {
    Case full = GetParam();
    full.recompute = Recompute::full;
    TestWorld again(of(full, form)), kept(of(GetParam(), form));
    EXPECT_EQ(again.losses(2), kept.losses(2));
    EXPECT_EQ(again.parameters(), kept.parameters());
  }
}

TEST_P(ExpertGroups, MeasuredPeakIsThePredictedOneAndNoMoreRowsComeThanThereIsRoomFor) {
  for (bool form : {true, false}) {
    config::Config config = of(GetParam(), form);
    StepResult result = TestWorld(config).step(1);
    EXPECT_EQ(result.measured_peak, result.predicted_peak);
    EXPECT_EQ(result.exchange_rows_limit, config.data.seq_len * config.parallel.expert_group);
    EXPECT_EQ(result.exchange_rows, result.exchange_rows_limit) << "every token has an expert everywhere";
  }
}

TEST_P(ExpertGroups, FollowTheCurveOfOneRank) {
  double tolerance = GetParam().dtype == config::Dtype::fp32 ? 1e-6 : 1e-3;  // bf16: rounded at each place
  Case alone = GetParam();
  alone.ranks = alone.expert_group = 1;
  TestWorld one(of(alone, true)), group(of(GetParam(), true));
  for (std::uint64_t step = 1; step <= 3; ++step) {
    double a = loss(one.step(step)), b = loss(group.step(step));
    EXPECT_NEAR(a, b, tolerance * a) << "step " << step;
  }
}

/// Of the even form, in a training step and on every rank.
TEST_P(ExpertGroups, CountersHaveTheBytesOfTheClosedForm) {
  config::Config config = of(GetParam(), true);
  TestWorld world(config);
  world.step(1);
  for (int rank = 0; rank < world.size(); ++rank) {
    auto lines = plan::step_traffic(config, world.cell(rank).placement(), plan::choices_of(config));
    for (const char* operation : {"dispatch", "combine"}) {
      std::int64_t counted = 0;
      for (const TrafficLine& line : world.traffic(rank)) {
        if (line.operation != operation) continue;
        EXPECT_EQ(line.cargo.bucket, "experts");
        counted += static_cast<std::int64_t>(line.inside + line.between);
      }
      EXPECT_EQ(counted, plan::total(lines, operation).all()) << operation << " of rank " << rank;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Worlds, ExpertGroups,
                         testing::Values(Case{2, 2}, Case{4, 2}, Case{4, 4}, Case{2, 2, Recompute::none},
                                         Case{4, 2, Recompute::selective}, Case{4, 4, Recompute::none},
                                         Case{4, 2, Recompute::none, config::Dtype::bf16}),
                         [](const auto& test) { return name_of(test.param); });

TEST(ExpertGroup, WithoutGroupsOfTheRouterOnlyTheRowsThatAreNeededCome) {
  config::Config config = tiny_config();
  config.parallel.ranks = config.parallel.expert_group = 4;
  config.data.rows_per_step = 8;
  StepResult result = TestWorld(config).step(1);
  EXPECT_GT(result.exchange_rows, 0);
  EXPECT_LT(result.exchange_rows, result.exchange_rows_limit) << "a token has two experts, there are four places";
  EXPECT_EQ(result.measured_peak, result.predicted_peak);
}

TEST(ExpertGroup, OfOneReportsNoExchange) {
  StepResult result = TestWorld(tiny_config()).step(1);
  EXPECT_EQ(result.exchange_rows_limit, 0);
  EXPECT_EQ(result.lanes[static_cast<int>(plan::Lane::exchange)].busy_ms, 0);
}

}  // namespace
}  // namespace ganymede::worker
