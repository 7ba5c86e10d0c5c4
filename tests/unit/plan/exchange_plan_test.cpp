#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "common/plan/exchange_form.h"
#include "common/plan/executor.h"
#include "common/plan/kept.h"
#include "common/plan/plan.h"
#include "common/plan/simulated/executor.h"
#include "common/plan/timeline.h"
#include "common/plan/traffic.h"

/// Tokens that travel to experts of other ranks, in the plan.
namespace ganymede::plan {
namespace {

using config::Recompute;

struct Case {
  int ranks, expert_group, router_groups, rows;
  Recompute recompute = Recompute::full;
};

config::Config of(const Case& c) {
  config::Config config;
  config.parallel.ranks = c.ranks;
  config.parallel.expert_group = c.expert_group;
  config.model.layers = 4;
  config.model.dense_layers = 1;
  config.model.experts = 8;
  config.model.top_k = 4;
  config.model.router_groups = c.router_groups;
  config.data.rows_per_step = c.ranks * c.rows;
  config.data.seq_len = 48;
  config.offload.fraction = 0.5;
  config.recompute = c.recompute;
  config.validation.rows = 5;
  return config;
}

StepPlan train(const config::Config& config, int rank = 0) {
  return build(config, placement::build(config, rank), PlanKind::train);
}

std::vector<int> of_kind(const StepPlan& plan, OperationKind kind, Part part = Part::whole) {
  std::vector<int> found;
  for (std::size_t i = 0; i < plan.operations.size(); ++i) {
    if (plan.operations[i].kind == kind && plan.operations[i].part == part) found.push_back(static_cast<int>(i));
  }
  return found;
}

class ExchangePlan : public testing::TestWithParam<Case> {};

TEST_P(ExchangePlan, HoldsItsInvariantsOnEveryRankForBothKinds) {
  config::Config config = of(GetParam());
  for (int rank = 0; rank < config.parallel.ranks; ++rank) {
    check(train(config, rank));
    check(build(config, placement::build(config, rank), PlanKind::validate));
  }
}

TEST_P(ExchangePlan, ARowIsDispatchedBetweenItsPartsAndComesBackBehindThem) {
  StepPlan plan = train(of(GetParam()));
  for (int layer = 1; layer < 4; ++layer) {
    for (int row = 0; row < GetParam().rows; ++row) {
      std::string order;
      for (const Operation& o : plan.operations) {
        if (o.layer != layer || o.row != row || o.kind == OperationKind::offload || o.kind == OperationKind::prefetch)
          continue;
        order += std::string(name(o.kind)) + " " + (o.part == Part::whole ? "" : std::string(name(o.part)) + " ");
      }
      std::string again = GetParam().recompute == Recompute::none ? "" : "recompute attention ";
      EXPECT_EQ(order, "forward attention dispatch forward experts combine " + again +
                           "dispatch backward experts combine backward attention ");
    }
  }
}

/// Calls on a communicator are matched by their order: it must be the same on all ranks, so nothing but the list of the
/// lane may decide it.
TEST_P(ExchangePlan, AllRanksCallTheExchangeInTheSameOrder) {
  auto calls = [&](int rank) {
    std::vector<std::string> list;
    for (const Operation& o : train(of(GetParam()), rank).operations) {
      if (o.kind == OperationKind::dispatch || o.kind == OperationKind::combine) {
        EXPECT_EQ(o.lane, Lane::exchange);
        list.push_back(describe(o));
      }
    }
    return list;
  };
  for (int rank = 1; rank < GetParam().ranks; ++rank) EXPECT_EQ(calls(rank), calls(0));
  EXPECT_EQ(calls(0).size(), static_cast<std::size_t>(4 * 3 * GetParam().rows));
}

TEST_P(ExchangePlan, EveryExchangeBufferHasTheSizeOfItsForm) {
  config::Config config = of(GetParam());
  ExchangeForm form = exchange_form(config);
  EXPECT_EQ(form.even, GetParam().router_groups % GetParam().expert_group == 0);
  std::set<Travel> seen;
  for (const Buffer& buffer : train(config).buffers) {
    if (buffer.travel == Travel::none) continue;
    seen.insert(buffer.travel);
    EXPECT_EQ(buffer.kind, BufferKind::exchange);
    bool large = buffer.travel == Travel::received || buffer.travel == Travel::gradients;
    std::int64_t rows = form.tokens * (large ? GetParam().expert_group : 1);
    EXPECT_GE(buffer.bytes, rows * form.hidden * 4) << buffer.name;
    EXPECT_LE(buffer.bytes, form.tokens * GetParam().expert_group * (form.hidden + 2 * form.top_k + 32) * 4);
  }
  EXPECT_EQ(seen.contains(Travel::staged), !form.even);
  EXPECT_EQ(seen.contains(Travel::results), keeps_received(config));
}

TEST_P(ExchangePlan, GradientsAreSummedInTheOrderOfRows) {
  for (Part part : {Part::attention, Part::experts}) {
    std::map<int, int> next;  // row, by layer
    StepPlan plan = train(of(GetParam()));
    for (int i : of_kind(plan, OperationKind::backward, part)) {
      EXPECT_EQ(plan.operations[i].row, next[plan.operations[i].layer]++);
    }
    EXPECT_EQ(next.size(), 3u);
  }
}

/// Closed form of the even exchange: the sum over the operations, and over all ranks every token once to every other.
TEST_P(ExchangePlan, TrafficIsTheSumOverTheOperations) {
  config::Config config = of(GetParam());
  placement::Placement placement = placement::build(config, 1);
  StepPlan plan = build(config, placement, PlanKind::train);
  Moved dispatched, combined;
  for (const Operation& o : plan.operations) {
    if (o.kind == OperationKind::dispatch) dispatched.inside += o.bytes;
    if (o.kind == OperationKind::combine) combined.inside += o.bytes;
  }
  auto lines = step_traffic(config, placement, choices_of(config));
  if (!exchange_form(config).even) {
    EXPECT_EQ(total(lines, "dispatch").all(), 0) << "the router decides";
    return;
  }
  EXPECT_EQ(total(lines, "dispatch").inside, dispatched.inside);
  EXPECT_EQ(total(lines, "combine").inside, combined.inside);
  const config::Model& model = config.model;
  std::int64_t row = std::int64_t{config.data.seq_len} * model.hidden * 4 * (config.parallel.expert_group - 1);
  std::int64_t choices = std::int64_t{config.data.seq_len} * model.top_k * 8 * (config.parallel.expert_group - 1);
  std::int64_t times = 3 * GetParam().rows;  // layers with experts, rows
  bool kept = config.recompute == Recompute::none;
  EXPECT_EQ(dispatched.inside, times * ((kept ? 2 : 3) * row + (kept ? 1 : 2) * choices));
  EXPECT_EQ(combined.inside, times * (2 * row + choices / 2));
}

INSTANTIATE_TEST_SUITE_P(Cases, ExchangePlan,
                         testing::Values(Case{2, 2, 1, 1}, Case{2, 2, 2, 2}, Case{4, 2, 1, 3}, Case{4, 2, 2, 4},
                                         Case{4, 4, 4, 2}, Case{4, 4, 2, 2}, Case{4, 2, 4, 3, Recompute::none},
                                         Case{4, 2, 1, 3, Recompute::none}, Case{2, 2, 2, 5, Recompute::selective},
                                         Case{3, 3, 1, 2}, Case{6, 3, 2, 2}, Case{5, 5, 4, 1, Recompute::none}));

TEST(ExchangePlanOfOne, HasNoExchangeAndWholeLayers) {
  StepPlan plan = train(of({2, 1, 4, 2}));
  for (const Operation& o : plan.operations) {
    EXPECT_NE(o.lane, Lane::exchange);
    EXPECT_EQ(o.part, Part::whole);
  }
}

/// Computing a part takes 10, dispatch and combine 8.
std::vector<double> durations(const StepPlan& plan) {
  std::vector<double> ms;
  for (const Operation& o : plan.operations) {
    bool travels = o.kind == OperationKind::dispatch || o.kind == OperationKind::combine;
    ms.push_back(travels ? 8 : o.lane == Lane::compute && o.part != Part::whole ? 10 : 0);
  }
  return ms;
}

double sum(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

TEST(ExchangePlanInTime, ARowTravelsBesideTheComputationOfAnother) {
  for (int groups : {1, 2}) {
    StepPlan one = train(of({2, 2, groups, 1})), two = train(of({2, 2, groups, 2})), six = train(of({2, 2, groups, 6}));
    EXPECT_EQ(length_ms(timeline(one, {durations(one)})), sum(durations(one)))
        << "a row alone has nothing to wait beside";
    double compute = 5 * 10 * 3;  // five parts, three layers
    EXPECT_LT(length_ms(timeline(two, {durations(two)})), 0.8 * sum(durations(two)));
    EXPECT_LE(length_ms(timeline(two, {durations(two)})), 2 * compute + 2 * 8);
    EXPECT_LE(length_ms(timeline(six, {durations(six)})), 6 * compute + 2 * 8)
        << "only the first way there and the last back";
  }
}

TEST(ExchangePlanInTime, TheNextLayerIsGatheredBesideTheExchange) {
  config::Config config = of({4, 2, 2, 1});
  StepPlan plan = train(config);
  std::vector<double> ms = durations(plan);
  for (std::size_t i = 0; i < ms.size(); ++i) {
    if (plan.operations[i].kind == OperationKind::gather) ms[i] = 4;
  }
  std::vector<Span> spans = timeline(plan, {ms});
  int beside = 0;
  for (int g : of_kind(plan, OperationKind::gather)) {
    for (int d : of_kind(plan, OperationKind::dispatch)) {
      beside += spans[g].start_ms < spans[d].end_ms && spans[d].start_ms < spans[g].end_ms ? 1 : 0;
    }
  }
  EXPECT_GT(beside, 0);
}

TEST(ExchangePlanInTime, AnExchangeBesideNothingIsExposed) {
  StepPlan plan = train(of({2, 2, 2, 1}));
  EXPECT_EQ(sum_ms(exposed_communication(plan, timeline(plan, {durations(plan)}))), 8 * 4 * 3);
}

TEST(ExchangeForm, KeepsWhatCameOnlyWhereItsNumberIsKnown) {
  auto has = [](const config::Config& config, Kept what) {
    auto parts = kept_activations(config, 3).parts;
    return std::any_of(parts.begin(), parts.end(), [&](const KeptPart& part) { return part.what == what; });
  };
  config::Config even = of({2, 2, 2, 1, Recompute::none}), uneven = of({2, 2, 1, 1, Recompute::none});
  EXPECT_TRUE(has(even, Kept::received_rows));
  EXPECT_TRUE(has(even, Kept::gate_up));
  EXPECT_FALSE(has(even, Kept::feed_input)) << "it is among the received rows";
  EXPECT_FALSE(has(uneven, Kept::received_rows));
  EXPECT_FALSE(has(uneven, Kept::gate_up));
  EXPECT_TRUE(has(uneven, Kept::feed_input));
  EXPECT_TRUE(has(uneven, Kept::choices));
  even.recompute = Recompute::selective;
  EXPECT_FALSE(has(even, Kept::received_rows));
}

TEST(ExchangeForm, UnevenBytesAreThoseOfBalancedRouting) {
  config::Config config = of({2, 2, 1, 1});
  config.model.top_k = 1;  // half of the tokens stay here
  config::Config even = config;
  even.model.top_k = even.model.router_groups = 2;
  EXPECT_EQ(exchange_bytes(config, 0).combine_forward * 2, exchange_bytes(even, 0).combine_forward);
}

/// Three experts at two places, a choice a token: of three tokens two go to the place that holds two.
TEST(ExchangeForm, PlacesThatHoldMoreReceiveMore) {
  config::Config config = of({2, 2, 1, 1});
  config.model.experts = 3;
  config.model.top_k = 1;
  std::int64_t row = config.model.hidden * 4, tokens = config.data.seq_len, counts = 8;
  ExchangeBytes larger = exchange_bytes(config, 0), smaller = exchange_bytes(config, 1);
  EXPECT_EQ(larger.dispatch_forward, tokens / 3 * (row + 8) + counts);
  EXPECT_EQ(smaller.dispatch_forward, tokens / 3 * 2 * (row + 8) + counts);
  EXPECT_EQ(larger.combine_forward, tokens / 3 * 2 * row) << "what came goes back";
  EXPECT_EQ(smaller.combine_forward, tokens / 3 * row);
}

}  // namespace
}  // namespace ganymede::plan
