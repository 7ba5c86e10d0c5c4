#include "common/plan/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "common/base/error.h"

namespace ganymede::plan {
namespace {

config::Config small(int ranks, int expert_group, int layers, double offload, int replicas = 1) {
  config::Config config;
  config.parallel.ranks = ranks;
  config.parallel.expert_group = expert_group;
  config.parallel.replicas = replicas;
  config.model.layers = layers;
  config.model.experts = 8;
  config.data.rows_per_step = 12;
  config.data.seq_len = 32;
  config.offload.fraction = offload;
  config.validation.rows = 7;
  return config;
}

StepPlan train(const config::Config& config, int rank = 0) {
  return build(config, placement::build(config, rank), PlanKind::train);
}

std::vector<int> of_kind(const StepPlan& plan, OperationKind kind) {
  std::vector<int> found;
  for (std::size_t i = 0; i < plan.operations.size(); ++i) {
    if (plan.operations[i].kind == kind) found.push_back(static_cast<int>(i));
  }
  return found;
}

/// All that is complete when operation `i` starts, found without the plan's own code.
std::vector<std::set<int>> closure(const StepPlan& plan) {
  std::vector<std::set<int>> before(plan.operations.size());
  std::map<Lane, int> last;
  for (int i = 0; i < static_cast<int>(plan.operations.size()); ++i) {
    std::vector<int> direct = plan.operations[i].after;
    if (auto it = last.find(plan.operations[i].lane); it != last.end()) direct.push_back(it->second);
    for (int d : direct) {
      before[i].insert(d);
      before[i].insert(before[d].begin(), before[d].end());
    }
    last[plan.operations[i].lane] = i;
  }
  return before;
}

struct Shape {
  int ranks, expert_group, layers;
  double offload;
  int replicas = 1;
  bool sharded = false;  // the state, over replicas
};

class EveryShape : public testing::TestWithParam<Shape> {
 protected:
  config::Config config() const {
    Shape s = GetParam();
    config::Config config = small(s.ranks, s.expert_group, s.layers, s.offload, s.replicas);
    if (s.sharded) config.replicas.state = config::ReplicaState::sharded;
    return config;
  }
};

TEST_P(EveryShape, HoldsItsInvariantsOnEveryRankForBothKinds) {
  for (int rank = 0; rank < config().parallel.ranks; ++rank) {
    check(train(config(), rank));
    check(build(config(), placement::build(config(), rank), PlanKind::validate));
  }
}

TEST_P(EveryShape, OperationsThatShareABufferAreOrdered) {
  StepPlan plan = train(config());
  auto before = closure(plan);
  std::map<int, int> last_user;
  for (int i = 0; i < static_cast<int>(plan.operations.size()); ++i) {
    for (const auto* list : {&plan.operations[i].takes, &plan.operations[i].uses, &plan.operations[i].frees}) {
      for (int b : *list) {
        if (auto it = last_user.find(b); it != last_user.end() && it->second != i) {
          EXPECT_TRUE(before[i].contains(it->second))
              << i << " and " << it->second << " share " << plan.buffers[b].name;
        }
        last_user[b] = i;
      }
    }
  }
}

TEST_P(EveryShape, EveryBucketIsGatheredReducedStoredAndCountedInTheNorm) {
  config::Config c = config();
  placement::Placement placement = placement::build(c, 0);
  StepPlan plan = train(c);
  for (auto kind : {OperationKind::reduce, OperationKind::store_gradients, OperationKind::accumulate_norm}) {
    std::vector<int> buckets;
    for (int i : of_kind(plan, kind)) buckets.push_back(plan.operations[i].bucket);
    std::sort(buckets.begin(), buckets.end());
    ASSERT_EQ(buckets.size(), placement.buckets.size());
    for (std::size_t b = 0; b < buckets.size(); ++b) EXPECT_EQ(buckets[b], static_cast<int>(b));
  }
  std::set<int> gathered;
  for (int i : of_kind(plan, OperationKind::gather)) gathered.insert(plan.operations[i].bucket);
  EXPECT_EQ(gathered.size(), placement.buckets.size());
}

TEST_P(EveryShape, TheVoteWaitsForEveryNormAndEveryForward) {
  StepPlan plan = train(config());
  auto before = closure(plan);
  int vote = of_kind(plan, OperationKind::vote).at(0);
  for (auto kind : {OperationKind::accumulate_norm, OperationKind::store_gradients, OperationKind::forward,
                    OperationKind::wait_update}) {
    for (int i : of_kind(plan, kind)) EXPECT_TRUE(before[vote].contains(i)) << name(kind) << " " << i;
  }
}

TEST_P(EveryShape, ComputeReadsParametersOnlyAfterTheirGather) {
  config::Config c = config();
  placement::Placement placement = placement::build(c, 0);
  StepPlan plan = train(c);
  auto before = closure(plan);
  for (int i = 0; i < static_cast<int>(plan.operations.size()); ++i) {
    const Operation& o = plan.operations[i];
    bool reads = o.kind == OperationKind::forward || o.kind == OperationKind::recompute;
    if (!reads || o.layer < 0) continue;
    for (std::size_t b = 0; b < placement.buckets.size(); ++b) {
      if (placement.buckets[b].layer != o.layer) continue;
      bool experts = placement.buckets[b].kind == model_spec::BucketKind::experts;
      if (o.part != Part::whole && experts != (o.part == Part::experts)) continue;
      auto gathers = of_kind(plan, OperationKind::gather);
      EXPECT_TRUE(std::any_of(gathers.begin(), gathers.end(), [&](int g) {
        return plan.operations[g].bucket == static_cast<int>(b) && before[i].contains(g);
      }));
    }
  }
}

TEST_P(EveryShape, AtMostTwoLayersOfParametersAreAlive) {
  StepPlan plan = train(config());
  std::multiset<int> layers;
  for (const Operation& o : plan.operations) {
    for (int b : o.takes) {
      if (plan.buffers[b].kind == BufferKind::parameters) layers.insert(plan.buffers[b].layer);
    }
    EXPECT_LE(std::set<int>(layers.begin(), layers.end()).size(), 2u);
    for (int b : o.frees) {
      if (plan.buffers[b].kind == BufferKind::parameters) layers.erase(layers.find(plan.buffers[b].layer));
    }
  }
}

/// Whatever order the lanes run in, the most bytes alive is the stated peak when buffers are taken in list order.
TEST_P(EveryShape, NoInterleavingOfLanesNeedsMoreThanThePeak) {
  StepPlan plan = train(config());
  for (unsigned seed = 1; seed <= 5; ++seed) {
    std::vector<bool> done(plan.operations.size(), false);
    std::map<Lane, std::vector<int>> queue;
    for (int i = static_cast<int>(plan.operations.size()) - 1; i >= 0; --i) queue[plan.operations[i].lane].push_back(i);
    std::int64_t alive = 0, most = 0;
    unsigned state = seed;
    for (std::size_t finished = 0; finished < plan.operations.size();) {
      std::vector<Lane> ready;
      for (auto& [lane, operations] : queue) {
        if (operations.empty()) continue;
        const auto& after = plan.operations[operations.back()].after;
        if (std::all_of(after.begin(), after.end(), [&](int d) { return done[d]; })) ready.push_back(lane);
      }
      ASSERT_FALSE(ready.empty()) << "the plan cannot go on";
      state = state * 1664525u + 1013904223u;
      auto& operations = queue[ready[(state >> 16) % ready.size()]];
      int i = operations.back();
      operations.pop_back();
      for (int b : plan.operations[i].takes) {
        if (plan.buffers[b].kind != BufferKind::arena) alive += plan.buffers[b].bytes;
      }
      most = std::max(most, alive);
      for (int b : plan.operations[i].frees) {
        if (plan.buffers[b].kind != BufferKind::arena) alive -= plan.buffers[b].bytes;
      }
      done[i] = true;
      ++finished;
    }
    EXPECT_LE(most, plan.peak_bytes);
    EXPECT_EQ(alive, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, EveryShape,
                         testing::Values(Shape{1, 1, 1, 0}, Shape{1, 1, 3, 0.5}, Shape{2, 1, 1, 1}, Shape{2, 2, 2, 0.5},
                                         Shape{3, 1, 3, 1}, Shape{4, 2, 3, 0.34}, Shape{4, 4, 2, 0},
                                         Shape{4, 1, 2, 0, 4}, Shape{6, 1, 2, 0.5, 2}, Shape{4, 2, 2, 0, 2},
                                         Shape{4, 1, 2, 0, 4, true}, Shape{6, 1, 3, 0.5, 2, true}));

TEST(StepPlan, IsTheSameForTheSameConfiguration) {
  config::Config config = small(2, 1, 3, 0.5);
  auto placement = placement::build(config, 1);
  EXPECT_EQ(print(train(config, 1), placement), print(train(config, 1), placement));
}

TEST(StepPlan, ThousandsOfRowsAreLaidOutWithoutDelay) {
  config::Config config = small(1, 1, 4, 0);
  config.data.rows_per_step = 3000;  // 12,000 saved layer inputs that are alive together
  StepPlan plan = train(config);
  check(plan);
  EXPECT_GE(plan.pool_bytes, plan.peak_bytes);
}

TEST(StepPlan, OffloadTurnsPoolIntoArena) {
  StepPlan none = train(small(1, 1, 6, 0)), half = train(small(1, 1, 6, 0.5)), all = train(small(1, 1, 6, 1));
  std::int64_t hidden = hidden_bytes(small(1, 1, 6, 0));
  EXPECT_EQ(none.arena_bytes, 0);
  EXPECT_EQ(half.arena_bytes, 3 * 12 * hidden);
  EXPECT_EQ(all.arena_bytes, 6 * 12 * hidden);
  EXPECT_LT(half.peak_bytes, none.peak_bytes);
  EXPECT_LT(all.peak_bytes, half.peak_bytes);
}

TEST(StepPlan, OneRankMovesNoParametersAndNoGradients) {
  for (const Operation& o : train(small(1, 1, 3, 0)).operations) {
    if (o.kind == OperationKind::gather || o.kind == OperationKind::reduce) {
      EXPECT_EQ(o.bytes, 0);
      EXPECT_TRUE(o.takes.empty());
    }
  }
}

TEST(StepPlan, BytesOfGathersAndReductionsAreTheClosedForm) {
  config::Config config = small(4, 1, 3, 0);
  auto placement = placement::build(config, 2);
  StepPlan plan = build(config, placement, PlanKind::train);
  std::int64_t gathered = 0, reduced = 0, gather_expected = 0, reduce_expected = 0;
  for (const Operation& o : plan.operations) {
    if (o.kind == OperationKind::gather) gathered += o.bytes;
    if (o.kind == OperationKind::reduce) reduced += o.bytes;
  }
  for (const auto& bucket : placement.buckets) {
    bool once = bucket.layer == 2 || bucket.layer < 0;  // the last layer stays, embedding and head are used once
    gather_expected += bucket.shard_elements() * 4 * 3 * (once ? 1 : 2);
    reduce_expected += (bucket.elements - bucket.shard_elements()) * 4;
  }
  EXPECT_EQ(gathered, gather_expected);
  EXPECT_EQ(reduced, reduce_expected);
}

TEST(StepPlan, ReplicasSumEachShardOnceBeforeItsNorm) {
  config::Config config = small(6, 1, 3, 0, 2);
  std::int64_t moved = 0, shards = 0;
  for (int rank : {1, 4}) {  // the same shard of both replicas
    auto placement = placement::build(config, rank);
    StepPlan plan = build(config, placement, PlanKind::train);
    auto before = closure(plan);
    auto sums = of_kind(plan, OperationKind::replica_reduce), norms = of_kind(plan, OperationKind::accumulate_norm);
    ASSERT_EQ(sums.size(), placement.buckets.size());
    for (std::size_t i = 0; i < sums.size(); ++i) {
      EXPECT_EQ(plan.operations[sums[i]].bucket, plan.operations[norms[i]].bucket);
      EXPECT_TRUE(before[norms[i]].contains(sums[i]));
      moved += plan.operations[sums[i]].bytes;
    }
    for (const auto& bucket : placement.buckets) shards += bucket.shard_elements() * 4;
  }
  EXPECT_EQ(moved, shards) << "half of the shard out and half of the sums back, on each of two";
}

TEST(StepPlan, ABufferUsedAfterItsEndIsFound) {
  StepPlan plan = train(small(1, 1, 2, 0));
  int used = -1;
  for (Operation& o : plan.operations) {
    if (used < 0 && !o.frees.empty()) used = o.frees[0];
  }
  ASSERT_GE(used, 0);
  plan.operations.back().uses.push_back(used);
  EXPECT_DEATH(check(plan), "after it is freed");
}

TEST(StepPlan, AMissingDependencyIsFound) {
  StepPlan plan = train(small(2, 1, 2, 0));
  for (int i : of_kind(plan, OperationKind::reduce)) plan.operations[i].after.clear();
  EXPECT_DEATH(check(plan), "plan: ");
}

TEST(StepPlan, OverlappingPlacesAreFound) {
  StepPlan plan = train(small(2, 1, 2, 0));
  for (Buffer& buffer : plan.buffers) buffer.offset = 0;
  EXPECT_DEATH(check(plan), "overlap while both are alive");
}

}  // namespace
}  // namespace ganymede::plan
