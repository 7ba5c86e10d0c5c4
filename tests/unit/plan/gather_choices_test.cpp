#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "common/plan/timeline.h"
#include "common/plan/traffic.h"
#include "tests/unit/plan/plans.h"

namespace ganymede::plan {
namespace {

TEST(MicroBatches, GatherForEachAndReduceOnce) {
  config::Config config = base();
  StepPlan whole = train(config);
  config.micro_batch.rows = 1;
  StepPlan parts = train(config);
  EXPECT_EQ(count(parts, OperationKind::reduce), count(whole, OperationKind::reduce));
  EXPECT_EQ(count(parts, OperationKind::backward), count(whole, OperationKind::backward));
  std::map<int, int> gathers;
  for (int i : of_kind(parts, OperationKind::gather)) ++gathers[parts.operations[i].layer];
  int buckets = 2;  // dense and experts
  EXPECT_EQ(gathers[-1], 3) << "for the forward of each";
  EXPECT_EQ(gathers[0], 4) << "for the first forward and each backward; the next forward finds it there";
  EXPECT_EQ(gathers[1], buckets * 3 * 2) << "for each pass";
  EXPECT_EQ(gathers[3], buckets * 3) << "the last layer stays from forward to backward";
  EXPECT_EQ(gathers[4], 3);
}

TEST(MicroBatches, RowsAreComputedInTheOrderOfTheWholeBatch) {
  config::Config config = base();
  auto rows = [&](OperationKind kind) {
    std::map<int, std::vector<int>> by_layer;
    StepPlan plan = train(config);
    for (int i : of_kind(plan, kind)) by_layer[plan.operations[i].layer].push_back(plan.operations[i].row);
    return by_layer;
  };
  auto forward = rows(OperationKind::forward), backward = rows(OperationKind::backward);
  for (int of_one : {1, 2, 3, 50}) {
    config.micro_batch.rows = of_one;
    EXPECT_EQ(rows(OperationKind::forward), forward);
    EXPECT_EQ(rows(OperationKind::backward), backward) << "gradients are added in this order";
  }
}

TEST(MicroBatches, TradeSavedInputsForGradientsThatStay) {
  config::Config config = base();
  StepPlan whole = train(config);
  config.micro_batch.rows = 1;
  StepPlan parts = train(config);
  auto most = [](const StepPlan& plan, BufferKind kind) {
    std::int64_t alive = 0, peak = 0;
    for (const Operation& o : plan.operations) {
      for (int b : o.takes) alive += plan.buffers[b].kind == kind ? plan.buffers[b].bytes : 0;
      peak = std::max(peak, alive);
      for (int b : o.frees) alive -= plan.buffers[b].kind == kind ? plan.buffers[b].bytes : 0;
    }
    return peak;
  };
  // Per row the inputs of all layers and one hidden state more than inputs, and while the state is replaced another.
  EXPECT_LE(most(parts, BufferKind::saved_input), most(whole, BufferKind::saved_input) / 3 + hidden_bytes(config));
  std::int64_t all = 0;
  for (const placement::Bucket& bucket : placement::build(config, 0).buckets)
    all += (bucket.elements * 4 + 63) / 64 * 64;
  EXPECT_EQ(most(parts, BufferKind::gradients), all);
  EXPECT_LT(most(whole, BufferKind::gradients), all);
}

TEST(MicroBatches, ReducedEachGiveTheirGradientsBack) {
  config::Config config = base();
  config.micro_batch.rows = 1;
  StepPlan once = train(config);
  config.micro_batch.reduce = config::MicroBatchReduce::each;
  StepPlan each = train(config);
  int buckets = count(once, OperationKind::reduce);
  EXPECT_EQ(count(each, OperationKind::reduce), 3 * buckets);
  EXPECT_EQ(count(each, OperationKind::accumulate), 2 * buckets) << "the first sum lies where the others are added";
  EXPECT_EQ(count(each, OperationKind::store_gradients), buckets);
  EXPECT_EQ(count(each, OperationKind::accumulate_norm), buckets);
  EXPECT_LT(each.peak_bytes, once.peak_bytes);
  placement::Placement placement = placement::build(config, 0);
  auto reduced = [&](const TrafficChoices& choices) {
    return total(step_traffic(config, placement, choices), "reduce").between;
  };
  TrafficChoices choices = choices_of(config), of_step = choices;
  of_step.reduce_each = false;
  EXPECT_EQ(reduced(choices), 3 * reduced(of_step));
}

TEST(KeepGathered, GathersEachBucketOnceAndHoldsAll) {
  config::Config config = base();
  config.micro_batch.rows = 1;
  config.keep_gathered = true;
  placement::Placement placement = placement::build(config, 0);
  StepPlan plan = train(config);
  EXPECT_EQ(count(plan, OperationKind::gather), static_cast<int>(placement.buckets.size()));
  std::int64_t all = 0;
  for (const placement::Bucket& bucket : placement.buckets) all += (bucket.elements * 4 + 63) / 64 * 64;
  EXPECT_EQ(peak_by_kind(plan)[static_cast<std::size_t>(BufferKind::parameters)], all);
}

TEST(DenseReshard, KeepsAShareAndGathersInsideTheNode) {
  config::Config config = base();
  config.dense.reshard = config::Reshard::node;
  for (int rank = 0; rank < 4; ++rank) {
    placement::Placement placement = placement::build(config, rank);
    StepPlan plan = build(config, placement, PlanKind::train);
    EXPECT_EQ(count(plan, OperationKind::reshard), 3) << "all layers but the last";
    EXPECT_EQ(count(plan, OperationKind::regather), 3);
    for (int i : of_kind(plan, OperationKind::regather)) {
      const placement::Bucket& bucket = placement.buckets[plan.operations[i].bucket];
      EXPECT_EQ(bucket.kind, model_spec::BucketKind::dense);
      EXPECT_NEAR(static_cast<double>(plan.operations[i].bytes), static_cast<double>(bucket.elements) * 4 / 2, 64)
          << "its half goes to the other one";
    }
    auto between = [&](const config::Config& c) {
      return total(step_traffic(c, placement, choices_of(c)), "gather, backward").between;
    };
    config::Config world = config;
    world.dense.reshard = config::Reshard::world;
    Moved dense;
    for (const char* name : {"layer.0.dense", "layer.1.dense", "layer.2.dense"}) {
      dense += gather_traffic(config, placement, placement.buckets[placement.bucket(name)], choices_of(config));
    }
    EXPECT_EQ(between(world) - between(config), dense.between);
  }
}

TEST(DenseReshard, SharesOfANodeMakeTheWhole) {
  config::Config config = base(6, 3);
  for (std::int64_t bytes : {1, 64, 65, 12345, 1 << 20}) {
    for (int first : {0, 3}) {
      std::size_t end = 0;
      for (int rank = first; rank < first + 3; ++rank) {
        placement::Placement placement = placement::build(config, rank);
        NodeShare share = node_share(config, placement, placement.buckets[0], bytes);
        EXPECT_EQ(share.members, (std::vector<int>{first, first + 1, first + 2}));
        EXPECT_EQ(share.place, rank - first);
        EXPECT_EQ(share.begin(), end);
        end += share.bytes();
      }
      EXPECT_EQ(end, static_cast<std::size_t>(bytes));
    }
  }
}

TEST(DenseReshard, ANodeOfOneRankKeepsTheWholeAndOneNodeGathersAsEver) {
  config::Config config = base(2, 1), world = base(2, 0);
  config.dense.reshard = world.dense.reshard = config::Reshard::node;
  StepPlan alone = train(config), together = train(world);
  EXPECT_EQ(count(alone, OperationKind::reshard) + count(alone, OperationKind::regather), 0);
  EXPECT_EQ(total(step_traffic(config, placement::build(config, 0), choices_of(config)), "gather, backward").between,
            [&] {
              TrafficChoices choices = choices_of(config);
              placement::Placement placement = placement::build(config, 0);
              Moved experts;
              for (const char* name : {"layer.1.experts", "layer.2.experts"}) {
                experts += gather_traffic(config, placement, placement.buckets[placement.bucket(name)], choices);
              }
              return experts.between;
            }());
  EXPECT_EQ(count(together, OperationKind::reshard), 0);
  world.dense.reshard = config::Reshard::world;
  EXPECT_EQ(print(together, placement::build(world, 0)), print(train(world), placement::build(world, 0)));
}

TEST(ReuseEmbedding, OffGathersItOnceMore) {
  config::Config config = base();
  StepPlan on = train(config);
  config.reuse_embedding = false;
  StepPlan off = train(config);
  EXPECT_EQ(count(off, OperationKind::gather), count(on, OperationKind::gather) + 1);
  auto gathers = of_kind(off, OperationKind::gather);
  EXPECT_EQ(off.operations[gathers.front()].layer, -1);
  EXPECT_EQ(off.operations[gathers.back()].layer, -1);
}

}  // namespace
}  // namespace ganymede::plan
