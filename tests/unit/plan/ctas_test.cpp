#include "common/plan/cost/ctas.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "common/plan/cost/cost_table.h"
#include "tests/unit/plan/plans.h"

namespace ganymede::plan {
namespace {

using enum OperationKind;

/// Two nodes of four ranks, two replicas, experts split over two ranks.
config::Config configuration() {
  config::Config config = base(8, 4);
  config.data.rows_per_step = 16;
  config.parallel.expert_group = 2;
  config.parallel.replicas = 2;
  return config;
}

Hardware device() {
  Hardware hardware;
  hardware.compute.multiprocessors = 100;
  hardware.collectives = {.ctas = 20, .cta_gb_per_second = 0.5};
  hardware.node = {.gb_per_second = 8, .latency_us = 0};
  hardware.network = {.gb_per_second = 4, .latency_us = 0};
  return hardware;
}

TEST(Ctas, ACapCountsForItsCommunicatorAlone) {
  struct Case {
    int config::MaxCtas::*key;
    std::vector<OperationKind> kinds;
  };
  const std::vector<Case> cases = {{&config::MaxCtas::gather, {gather}},
                                   {&config::MaxCtas::regather, {regather}},
                                   {&config::MaxCtas::reduce, {reduce}},
                                   {&config::MaxCtas::replicas, {replica_reduce}},
                                   {&config::MaxCtas::exchange, {dispatch, combine}},
                                   {&config::MaxCtas::matrices, {update_send, update_return}}};
  std::vector<OperationKind> carried;
  for (const Case& one : cases) carried.insert(carried.end(), one.kinds.begin(), one.kinds.end());
  for (const Case& one : cases) {
    config::Config config;
    config.collectives.max_ctas.*one.key = 3;
    for (OperationKind kind : carried) {
      bool capped = std::ranges::count(one.kinds, kind) > 0;
      EXPECT_EQ(ctas_of(kind, config, device()), capped ? 3 : 20) << name(kind);
      EXPECT_EQ(most_gb_per_second(kind, config, device()), capped ? 1.5 : 10) << name(kind);
    }
    for (OperationKind kind : {forward, backward, vote, offload, prefetch, reshard})
      EXPECT_EQ(ctas_of(kind, config, device()), 0) << name(kind);
  }
}

TEST(Ctas, ACapAboveWhatACommunicatorTakesChangesNothing) {
  config::Config config;
  config.collectives.max_ctas.gather = 1000;
  EXPECT_EQ(ctas_of(gather, config, device()), 20);
}

TEST(Ctas, WithoutNumbersOfTheDeviceNothingIsTakenOrBound) {
  config::Config config = configuration();
  placement::Placement placement = placement::build(config, 0);
  StepPlan plan = build(config, placement, PlanKind::train);
  std::vector<Moved> sent(plan.operations.size(), {1, 0});
  std::vector<double> none(plan.operations.size());
  EXPECT_EQ(taken_shares(plan, sent, config, Hardware{}), none);
  EXPECT_TRUE(std::isinf(most_gb_per_second(gather, config, Hardware{})));
}

TEST(Ctas, WhatMovesNothingTakesNothing) {
  config::Config config = configuration();
  placement::Placement placement = placement::build(config, 0);
  StepPlan plan = build(config, placement, PlanKind::train);
  std::vector<Moved> sent(plan.operations.size());
  EXPECT_EQ(taken_shares(plan, sent, config, device()), std::vector<double>(plan.operations.size()));
  sent.assign(plan.operations.size(), {0, 1});
  std::vector<double> taken = taken_shares(plan, sent, config, device());
  for (std::size_t i = 0; i < taken.size(); ++i)
    EXPECT_EQ(taken[i], ctas_of(plan.operations[i].kind, config, device()) / 100.0);
}

/// A gather inside the node at 8 GB/s needs 16 of these CTAs, one between nodes at 4 GB/s 8 of them.
TEST(Ctas, FewBoundTheRateOfTheirOwnTransfersAlone) {
  config::Config config = configuration();
  placement::Placement placement = placement::build(config, 0);
  StepPlan plan = build(config, placement, PlanKind::train);
  auto ms = [&](int cap) {
    config.collectives.max_ctas.gather = cap;
    return hardware_durations(plan, config, placement, choices_of(config), device());
  };
  std::vector<double> free = ms(0), enough = ms(16), few = ms(2);
  EXPECT_EQ(free, enough);
  TrafficChoices choices = choices_of(config);
  OperationTraffic traffic(config, placement, choices);
  int slower = 0;
  for (std::size_t i = 0; i < free.size(); ++i) {
    const Operation& operation = plan.operations[i];
    Moved moved = traffic.of(operation);
    if (operation.kind != gather || moved.all() == 0) {
      EXPECT_EQ(few[i], free[i]);
      continue;
    }
    double longer = static_cast<double>(moved.inside) * (1 / 1.0 - 1 / 8.0) / 1e6 +
                    static_cast<double>(moved.between) * (1 / 1.0 - 1 / 4.0) / 1e6;
    EXPECT_NEAR(few[i] - free[i], longer, 1e-9 * few[i]);
    ++slower;
  }
  EXPECT_GT(slower, 0);
}

}  // namespace
}  // namespace ganymede::plan
