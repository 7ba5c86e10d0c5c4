#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "common/plan/cost/cost_table.h"
#include "common/plan/simulated/executor.h"
#include "common/plan/timeline.h"
#include "common/plan/traffic.h"
#include "tests/unit/plan/plans.h"

namespace ganymede::plan {
namespace {

/// Every set of switches is one number.
config::Config numbered(int number) {
  constexpr int shapes[][3] = {{1, 1, 0}, {2, 1, 1}, {4, 2, 2}, {3, 1, 2}, {6, 1, 3}};
  const int* shape = shapes[number % 5];
  config::Config config = base(shape[0], shape[2]);
  config.parallel.expert_group = shape[1];
  config.parallel.replicas = number % 5 == 4 ? 2 : 1;
  if (number / 5 % 2 == 0) config.replicas.state = config::ReplicaState::sharded;
  auto bit = [&](int index) { return (number >> index & 1) != 0; };
  config.micro_batch.rows = number % 3;
  if (number / 3 % 2 == 0) config.micro_batch.reduce = config::MicroBatchReduce::each;
  config.keep_gathered = bit(0);
  config.dense.reshard = bit(1) ? config::Reshard::node : config::Reshard::world;
  config.reuse_embedding = bit(2);
  config.early_release = bit(3);
  config.gather_on_compute_lane = bit(4);
  config.reduce_into_compute_pool = bit(5);
  config.stream_update = bit(6);
  config.norm_in_backward = bit(7);
  config.offload.fraction = bit(3) ? 0.5 : 0;
  if (bit(1)) config.wire.expert_gather = config::ParameterWire::fp8;
  if (bit(5)) config.wire.dense_gradients = config::GradientWire::bf16_all_to_all;
  return config;
}
constexpr int all_numbers = 256;

TEST(PlanChoices, HoldTheInvariantsTogether) {
  for (int number = 0; number < all_numbers; ++number) {
    config::Config config = numbered(number);
    placement::Placement placement = placement::build(config, config.parallel.ranks - 1);
    for (PlanKind kind : {PlanKind::train, PlanKind::validate}) check(build(config, placement, kind));
  }
}

TEST(PlanChoices, MoveTheBytesOfTheClosedFormTogether) {
  for (int number = 0; number < all_numbers; ++number) {
    config::Config config = numbered(number);
    for (int rank = 0; rank < config.parallel.ranks; ++rank) {
      placement::Placement placement = placement::build(config, rank);
      TrafficChoices choices = choices_of(config);
      OperationTraffic traffic(config, placement, choices);
      Moved gathered, reduced;
      std::int64_t named = 0;
      for (const Operation& operation : build(config, placement, PlanKind::train).operations) {
        if (operation.lane == Lane::exchange) continue;  // tokens: their closed form is that of the even form alone
        Moved moved = traffic.of(operation);
        (operation.lane == Lane::reduce ? reduced : gathered) += moved;
        bool local = operation.kind == OperationKind::reshard || operation.kind == OperationKind::accumulate;
        if (!local && operation.bucket >= 0) named += operation.bytes;
      }
      auto lines = step_traffic(config, placement, choices);
      Moved gathers = total(lines, "gather, forward") + total(lines, "gather, backward");
      Moved sums = total(lines, "reduce") + total(lines, "replica_reduce");
      EXPECT_EQ(gathered.inside, gathers.inside) << number << " rank " << rank;
      EXPECT_EQ(gathered.between, gathers.between) << number << " rank " << rank;
      EXPECT_EQ(reduced.all(), sums.all()) << number << " rank " << rank;
      EXPECT_EQ(named, (gathers + sums).all()) << number << " rank " << rank;
    }
  }
}

TEST(NormInBackward, OffCountsAfterTheLastReduction) {
  config::Config config = base();
  StepPlan on = train(config);
  config.norm_in_backward = false;
  StepPlan off = train(config);
  EXPECT_LT(of_kind(on, OperationKind::accumulate_norm).front(), of_kind(on, OperationKind::reduce).back());
  EXPECT_GT(of_kind(off, OperationKind::accumulate_norm).front(), of_kind(off, OperationKind::reduce).back());
  EXPECT_EQ(count(off, OperationKind::accumulate_norm), count(on, OperationKind::accumulate_norm));
  int first = of_kind(off, OperationKind::accumulate_norm).front();
  std::vector<double> long_reductions(off.operations.size(), 0.0);
  for (int i : of_kind(off, OperationKind::reduce)) long_reductions[i] = 10;
  std::vector<Span> spans = timeline(off, {long_reductions});
  EXPECT_GE(spans[first].start_ms, spans[of_kind(off, OperationKind::reduce).back()].end_ms);
}

TEST(EarlyRelease, OffHoldsTheLayersOfAPass) {
  config::Config config = base();
  StepPlan on = train(config);
  config.early_release = false;
  StepPlan off = train(config);
  EXPECT_EQ(count(off, OperationKind::gather), count(on, OperationKind::gather));
  auto parameters = static_cast<std::size_t>(BufferKind::parameters);
  EXPECT_GT(peak_by_kind(off)[parameters], 3 * peak_by_kind(on)[parameters] / 2);
  EXPECT_GT(off.peak_bytes, on.peak_bytes);
}

TEST(GatherOnComputeLane, HoldsOneLayerAtATime) {
  config::Config config = base();
  config.gather_on_compute_lane = true;
  StepPlan plan = train(config);
  std::multiset<int> layers;
  for (const Operation& o : plan.operations) {
    EXPECT_NE(o.lane, Lane::gather);
    for (int b : o.takes) {
      if (plan.buffers[b].kind == BufferKind::parameters) layers.insert(plan.buffers[b].layer);
    }
    // The last layer stays while the head computes.
    int most = layers.contains(config.model.layers) ? 2 : 1;
    EXPECT_LE(static_cast<int>(std::set<int>(layers.begin(), layers.end()).size()), most);
    for (int b : o.frees) {
      if (plan.buffers[b].kind == BufferKind::parameters) layers.erase(layers.find(plan.buffers[b].layer));
    }
  }
  StepPlan ahead = train(base());
  EXPECT_LT(plan.peak_bytes, ahead.peak_bytes);
  EXPECT_EQ(count(plan, OperationKind::gather), count(ahead, OperationKind::gather));
}

TEST(ReduceIntoComputePool, OffGivesReductionsAPartOfTheirOwn) {
  config::Config config = base();
  config.wire.dense_gradients = config::GradientWire::bf16_all_to_all;
  StepPlan on = train(config);
  config.reduce_into_compute_pool = false;
  StepPlan off = train(config);
  EXPECT_EQ(off.peak_bytes, on.peak_bytes);
  EXPECT_GT(off.pool_bytes, on.pool_bytes);
  std::int64_t computation_end = 0, reductions_begin = off.pool_bytes;
  for (const Buffer& buffer : off.buffers) {
    if (buffer.kind == BufferKind::arena) continue;
    bool reduction = buffer.kind == BufferKind::gradients || buffer.name.starts_with("bf16 ");
    if (reduction) reductions_begin = std::min(reductions_begin, buffer.offset);
    if (!reduction) computation_end = std::max(computation_end, buffer.offset + buffer.bytes);
  }
  EXPECT_LE(computation_end, reductions_begin);
}

TEST(RopeCache, SharedTablesAreOneForEachBase) {
  config::Config config = base();
  std::int64_t one = std::int64_t{32} * 8 / 2 * 2 * 4;  // int(24 · 0.334) = 8 dimensions, cos and sin
  EXPECT_EQ(train(config).rotary_bytes, 2 * one) << "global and sliding layers";
  config.rope_cache = config::RopeCache::per_layer;
  EXPECT_EQ(train(config).rotary_bytes, 4 * one);
}

TEST(StreamUpdate, OffGathersAfterAllUpdates) {
  config::Config config = base();
  config.stream_update = false;
  StepPlan plan = train(config);
  auto waits = of_kind(plan, OperationKind::wait_update);
  ASSERT_EQ(waits.size(), 1u);
  std::vector<double> durations(plan.operations.size(), 0.0);
  durations[waits[0]] = 50;
  std::vector<Span> spans = timeline(plan, {durations});
  for (int i : of_kind(plan, OperationKind::gather)) EXPECT_GE(spans[i].start_ms, 50);
  config.stream_update = true;
  plan = train(config);
  EXPECT_GT(of_kind(plan, OperationKind::wait_update).at(0), of_kind(plan, OperationKind::gather).back());
}

TEST(SkipSteps, AStepThatIsLeftOutComputesNothing) {
  config::Config config = base();
  StepPlan plan = build(config, placement::build(config, 0), PlanKind::skip);
  check(plan);
  std::vector<OperationKind> kinds;
  for (const Operation& operation : plan.operations) kinds.push_back(operation.kind);
  EXPECT_EQ(kinds, (std::vector{OperationKind::wait_batch, OperationKind::wait_update, OperationKind::vote,
                                OperationKind::decide}));
  EXPECT_TRUE(plan.buffers.empty());
}

}  // namespace
}  // namespace ganymede::plan
