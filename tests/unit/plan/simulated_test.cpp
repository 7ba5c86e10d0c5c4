#include "common/plan/simulated/executor.h"

#include <gtest/gtest.h>

#include "common/plan/timeline.h"
#include "common/wire/bucket_form.h"

namespace ganymede::plan {
namespace {

/// gather 0 | forward 1 (after 0) | gather 2 | forward 3 (after 2) | offload 4 (after 1)
StepPlan small_plan() {
  StepPlan plan;
  plan.operations = {
      {.kind = OperationKind::gather, .lane = Lane::gather, .takes = {0}},
      {.kind = OperationKind::forward, .lane = Lane::compute, .frees = {0}, .after = {0}},
      {.kind = OperationKind::gather, .lane = Lane::gather, .takes = {1}},
      {.kind = OperationKind::forward, .lane = Lane::compute, .frees = {1}, .after = {2}},
      {.kind = OperationKind::offload, .lane = Lane::to_host, .takes = {2}, .frees = {2}, .after = {1}},
  };
  plan.buffers = {{"a", BufferKind::parameters, 64}, {"b", BufferKind::parameters, 128}, {"c", BufferKind::arena, 32}};
  return plan;
}

const std::vector<double> durations = {10, 5, 20, 5, 100};

TEST(SimulatedExecutor, StartsWhenLaneAndDependenciesAreFree) {
  ExecutorReport report = SimulatedExecutor({durations}).run(small_plan(), {});
  const double starts[] = {0, 10, 10, 30, 15}, ends[] = {10, 15, 30, 35, 115};
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(report.spans[i].start_ms, starts[i]) << i;
    EXPECT_EQ(report.spans[i].end_ms, ends[i]) << i;
  }
  EXPECT_EQ(report.lanes[0].busy_ms, 10);
  EXPECT_EQ(report.lanes[0].wait_ms, 25);
  EXPECT_EQ(length_ms(report.spans), 115);
}

TEST(SimulatedExecutor, IsTheSameEveryTime) {
  ExecutorReport first = SimulatedExecutor({durations}).run(small_plan(), {});
  ExecutorReport second = SimulatedExecutor({durations}).run(small_plan(), {});
  for (int i = 0; i < 5; ++i) EXPECT_EQ(first.spans[i].end_ms, second.spans[i].end_ms);
}

TEST(SimulatedExecutor, MissingDurationsTakeNoTime) {
  EXPECT_EQ(length_ms(timeline(small_plan(), {})), 0);
  EXPECT_EQ(length_ms(timeline(small_plan(), {{10}})), 10);
}

TEST(SimulatedExecutor, TransfersOnOneLinkShareIt) {
  StepPlan plan;
  plan.operations = {
      {.kind = OperationKind::gather, .lane = Lane::gather},
      {.kind = OperationKind::forward, .lane = Lane::compute},
      {.kind = OperationKind::reduce, .lane = Lane::reduce, .after = {1}},
      {.kind = OperationKind::dispatch, .lane = Lane::exchange, .after = {1}},
      {.kind = OperationKind::gather, .lane = Lane::gather},
  };
  std::vector<double> ms = {10, 4, 10, 8, 0};
  auto ends = [&](const std::vector<Link>& links) {
    std::vector<double> found;
    for (const Span& span : timeline(plan, {ms, {}, links})) found.push_back(span.end_ms);
    return found;
  };
  using enum Link;
  EXPECT_EQ(ends({}), (std::vector<double>{10, 4, 14, 12, 10}));
  // From 4 on two share: the gather has 6 ms left, which take 12; of the reduction 4 ms are left then.
  EXPECT_EQ(ends({between_nodes, none, between_nodes, none, none}), (std::vector<double>{16, 4, 20, 12, 16}));
  EXPECT_EQ(ends({between_nodes, none, between_nodes, inside_node, none}), (std::vector<double>{16, 4, 20, 12, 16}));
  // Three share: the gather's 6 ms take 18, the exchange's last 2 ms 4, the reduction's 2 ms after it their own time.
  EXPECT_EQ(ends({between_nodes, none, between_nodes, between_nodes, none}), (std::vector<double>{22, 4, 28, 26, 22}));
}

TEST(SimulatedExecutor, ComputationIsSlowerBesideWhatTakesOfTheDevice) {
  StepPlan plan;
  plan.operations = {
      {.kind = OperationKind::forward, .lane = Lane::compute},
      {.kind = OperationKind::gather, .lane = Lane::gather},
      {.kind = OperationKind::reduce, .lane = Lane::reduce},
      {.kind = OperationKind::backward, .lane = Lane::compute},
  };
  auto ends = [&](const std::vector<double>& ms, const std::vector<double>& taken) {
    std::vector<double> found;
    for (const Span& span : timeline(plan, {ms, {}, {}, taken})) found.push_back(span.end_ms);
    return found;
  };
  EXPECT_EQ(ends({10, 8, 4, 5}, {}), (std::vector<double>{10, 8, 4, 15}));
  // To 4 both take a quarter: half of the speed, 2 ms of work done; to 8 three quarters, 3 ms more; then 5 alone.
  EXPECT_EQ(ends({10, 8, 4, 5}, {0, 0.25, 0.25, 0}), (std::vector<double>{13, 8, 4, 18}));
  // What begins beside a transfer that is under way is slower from its start: to 16 half of 3 ms is done after 10.
  EXPECT_EQ(ends({5, 16, 0, 6}, {0, 0.5, 0, 0}), (std::vector<double>{10, 16, 0, 19}));
  // Whatever transfers take, a hundredth is left.
  EXPECT_EQ(ends({1, 400, 400, 0}, {0, 0.75, 0.75, 0}), (std::vector<double>{100, 400, 400, 100}));
}

TEST(SimulatedExecutor, StartsNoOperationBeforeItsEarliestTime) {
  OperationCosts costs{durations, {0, 0, 12.5, 0, 40}};
  std::vector<Span> spans = timeline(small_plan(), costs);
  EXPECT_EQ(spans[2].start_ms, 12.5);
  EXPECT_EQ(spans[3].start_ms, 32.5);
  EXPECT_EQ(spans[4].start_ms, 40);
}

TEST(Timeline, ExposedCommunicationIsWhatNoComputationCovers) {
  std::vector<Span> spans = timeline(small_plan(), {durations});
  std::vector<Interval> exposed = exposed_communication(small_plan(), spans);
  // Transfers run from 0 to 115 without a gap, computation from 10 to 15 and from 30 to 35.
  ASSERT_EQ(exposed.size(), 3u);
  EXPECT_EQ(exposed[0].to_ms, 10);
  EXPECT_EQ(exposed[1].from_ms, 15);
  EXPECT_EQ(exposed[1].to_ms, 30);
  EXPECT_EQ(exposed[2].from_ms, 35);
  EXPECT_EQ(exposed[2].to_ms, 115);
  EXPECT_EQ(sum_ms(exposed), 105);
}

TEST(Timeline, AWaitForAnUpdateIsNoCommunication) {
  StepPlan plan;
  plan.operations = {{.kind = OperationKind::gather, .lane = Lane::gather}};
  std::vector<Span> spans = {{0, 100, {.words_ms = 90, .collectives_ms = 10}}};
  EXPECT_EQ(sum_ms(exposed_communication(plan, spans)), 10);
}

TEST(Timeline, NothingIsExposedWhereNothingIsTransferred) {
  StepPlan plan;
  plan.operations = {{.kind = OperationKind::forward, .lane = Lane::compute}};
  EXPECT_TRUE(exposed_communication(plan, timeline(plan, {{5}})).empty());
}

TEST(Timeline, PeakIsSplitByKindAndLeavesOutTheArena) {
  StepPlan plan = small_plan();
  auto kinds = peak_by_kind(plan);
  EXPECT_EQ(kinds[static_cast<std::size_t>(BufferKind::parameters)], 128);
  EXPECT_EQ(kinds[static_cast<std::size_t>(BufferKind::arena)], 0);
}

/// Gathers and reductions of one layer take as long as the computation of its neighbour: only those at the ends of the
/// step show, whatever the wire formats are.
TEST(Timeline, TransfersOfALayerRunBesideTheComputationOfItsNeighbour) {
  for (auto wire : {config::ParameterWire::fp32, config::ParameterWire::fp8}) {
    config::Config config;
    config.parallel.ranks = 2;
    config.model.layers = 12;
    config.model.dense_layers = 0;
    config.data.rows_per_step = 2;
    config.offload.fraction = 0.5;
    config.wire.expert_gather = wire;
    StepPlan plan = build(config, placement::build(config, 0), PlanKind::train);
    std::vector<double> ms;
    double computed = 0;
    for (const Operation& o : plan.operations) {
      bool pass = o.kind == OperationKind::forward || o.kind == OperationKind::backward;
      bool transfer = o.kind == OperationKind::gather || o.kind == OperationKind::reduce ||
                      o.kind == OperationKind::offload || o.kind == OperationKind::prefetch;
      ms.push_back(pass ? 10 : transfer ? 4.5 : 0);  // two buckets a layer: 9 ms
      computed += pass ? 10 : 0;
    }
    std::vector<Span> spans = timeline(plan, {ms});
    EXPECT_LT(length_ms(spans), computed + 6 * 4.5) << wire::name(wire);
  }
}

TEST(Timeline, KindsOfARealPlanSumUpToItsPeak) {
  config::Config config;
  config.parallel.ranks = 2;
  config.model.layers = 3;
  config.data.rows_per_step = 4;
  config.offload.fraction = 0.5;
  StepPlan plan = build(config, placement::build(config, 0), PlanKind::train);
  std::int64_t sum = 0;
  for (std::int64_t bytes : peak_by_kind(plan)) sum += bytes;
  EXPECT_EQ(sum, plan.peak_bytes);
}

}  // namespace
}  // namespace ganymede::plan
