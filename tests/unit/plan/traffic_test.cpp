#include "common/plan/traffic.h"

#include <gtest/gtest.h>

#include <map>

#include "common/plan/cost/cost_table.h"
#include "common/plan/plan.h"
#include "tests/support/tree.h"

namespace ganymede::plan {
namespace {

using model_spec::BucketKind;

/// The reference job: three matrices of 256,000 × 6,144 stand in the two that the architecture has.
config::Config reference() {
  config::Config config = config::load(GANYMEDE_SOURCE_DIR "/configs/recipes/reference.toml", {});
  EXPECT_NEAR(static_cast<double>(model_spec::count(config.model).total), 951.9e9, 0.05e9);
  return config;
}

struct Between {
  double forward, backward, gradients;  // GB of rank 0
};

Between between(const config::Config& config, const placement::Placement& placement, const TrafficChoices& choices) {
  auto lines = step_traffic(config, placement, choices);
  auto gb = [&](const char* operation) { return static_cast<double>(total(lines, operation).between) / 1e9; };
  return {gb("gather, forward"), gb("gather, backward"), gb("reduce")};
}

TEST(Traffic, OfTheReferenceJobIsWhatWasPublished) {
  config::Config config = reference();
  placement::Placement placement = placement::build(config, 0);
  TrafficChoices choices = choices_of(config);
  choices.keep_last = false;
  choices.reuse_embedding = true;
  choices.dense_gradients = GradientExchange::fp32_reduce_scatter;
  Between plain = between(config, placement, choices);
  EXPECT_NEAR(plain.forward, 471, 0.55);
  EXPECT_NEAR(plain.backward, 470, 0.55);
  EXPECT_NEAR(plain.gradients, 942, 0.55);
  choices.expert_gather = config::ParameterWire::fp8;
  choices.dense_reshard = Reshard::node;
  choices.expert_gradients = GradientExchange::bf16_all_to_all;
  Between chosen = between(config, placement, choices);
  EXPECT_NEAR(chosen.forward, 246, 0.55);
  EXPECT_NEAR(chosen.backward, 240, 0.55);
  EXPECT_NEAR(chosen.gradients, 478, 0.55);
}

/// What a run with these keys does: the last layer and the head stay from forward to backward, so that backward gathers
/// a 74th less than was published.
TEST(Traffic, OfTheReferenceJobsPlanIsThatOfItsKeys) {
  config::Config config =
      config::load(GANYMEDE_SOURCE_DIR "/configs/recipes/reference.toml",
                   {"dense.reshard=node", "wire.expert_gather=fp8", "wire.expert_gradients=bf16_all_to_all"});
  placement::Placement placement = placement::build(config, 0);
  TrafficChoices choices = choices_of(config);
  Between chosen = between(config, placement, choices);
  EXPECT_NEAR(chosen.forward, 246, 0.55);
  EXPECT_NEAR(chosen.backward, 240 * 73.0 / 74, 0.55);
  EXPECT_NEAR(chosen.gradients, 478, 0.55);
  Moved gathered;
  OperationTraffic traffic(config, placement, choices);
  for (const Operation& operation : build(config, placement, PlanKind::train).operations) {
    if (operation.lane == Lane::gather) gathered += traffic.of(operation);
  }
  EXPECT_NEAR(static_cast<double>(gathered.between) / 1e9, chosen.forward + chosen.backward, 1e-6);
}

TEST(Traffic, OfTheReferenceJobIsAlikeOnEveryRank) {
  config::Config config = reference();
  TrafficChoices choices = choices_of(config);
  choices.dense_gradients = GradientExchange::fp32_reduce_scatter;
  Between first = between(config, placement::build(config, 0), choices);
  for (int rank : {1, 191, 383}) {
    Between other = between(config, placement::build(config, rank), choices);
    EXPECT_NEAR(other.forward / first.forward, 1, 0.05) << rank;
    EXPECT_NEAR(other.gradients / first.gradients, 1, 0.05) << rank;
  }
}

struct World {
  int ranks, expert_group, per_node;
};

class EveryWorld : public testing::TestWithParam<World> {
 protected:
  EveryWorld() {
    config_.parallel.ranks = GetParam().ranks;
    config_.parallel.expert_group = GetParam().expert_group;
    config_.topology.ranks_per_node = GetParam().per_node;
    config_.model.layers = 3;
    config_.model.experts = 8;
    config_.data.rows_per_step = 24;
    for (int rank = 0; rank < GetParam().ranks; ++rank) placements_.push_back(placement::build(config_, rank));
  }
  int node(int rank) const { return config_.topology.ranks_per_node == 0 ? 0 : rank / config_.topology.ranks_per_node; }

  config::Config config_;
  std::vector<placement::Placement> placements_;
};

TEST_P(EveryWorld, ClosedFormIsTheSumOverThePlansOperations) {
  TrafficChoices choices = choices_of(config_);
  for (const placement::Placement& placement : placements_) {
    StepPlan plan = build(config_, placement, PlanKind::train);
    std::int64_t gathered = 0, reduced = 0;
    for (const Operation& operation : plan.operations) {
      if (operation.kind == OperationKind::gather) gathered += operation.bytes;
      if (operation.kind == OperationKind::reduce) reduced += operation.bytes;
    }
    auto lines = step_traffic(config_, placement, choices);
    EXPECT_EQ(total(lines, "gather, forward").all() + total(lines, "gather, backward").all(), gathered);
    EXPECT_EQ(total(lines, "reduce").all(), reduced);
  }
}

/// Of all ranks together: a shard crosses once into each other node that has members, and reaches every member.
TEST_P(EveryWorld, ComposedTransfersCrossOnceForEachNodeAndReachEveryone) {
  TrafficChoices choices = choices_of(config_);
  choices.dense_gradients = choices.expert_gradients = GradientExchange::fp32_reduce_scatter;
  std::map<std::string, Moved> gathered, reduced, local;
  std::map<std::string, std::int64_t> crossing, delivered, regathered;
  for (const placement::Placement& placement : placements_) {
    for (const placement::Bucket& bucket : placement.buckets) {
      std::string name = bucket.name + " " + std::to_string(bucket.group.front());  // one an expert place
      std::map<int, std::int64_t> members;                                          // of each node
      for (int rank : bucket.group) ++members[node(rank)];
      std::int64_t shard = bucket.shard_elements() * 4;
      crossing[name] += shard * (static_cast<std::int64_t>(members.size()) - 1);
      delivered[name] += shard * (static_cast<std::int64_t>(bucket.group.size()) - 1);
      for (auto& [_, count] : members) regathered[name] += in_place(bucket) ? 0 : shard * (count - 1);
      gathered[name] += gather_traffic(config_, placement, bucket, choices);
      reduced[name] += reduce_traffic(config_, placement, bucket, choices);
      local[name] += regather_in_node_traffic(config_, placement, bucket, choices);
    }
  }
  for (auto& [name, bytes] : crossing) {
    EXPECT_EQ(gathered[name].between, bytes) << name;
    EXPECT_EQ(gathered[name].all(), delivered[name]) << name;
    EXPECT_EQ(reduced[name].between, bytes) << name;
    EXPECT_EQ(reduced[name].all(), delivered[name]) << name;
    EXPECT_EQ(local[name].between, 0) << name;
    EXPECT_EQ(local[name].inside, regathered[name]) << name;
  }
}

TEST_P(EveryWorld, Bf16GradientsAreHalfOfFp32) {
  TrafficChoices wide = choices_of(config_), narrow = wide;
  narrow.dense_gradients = narrow.expert_gradients = GradientExchange::bf16_all_to_all;
  for (const placement::Placement& placement : placements_) {
    Moved all = total(step_traffic(config_, placement, wide), "reduce");
    Moved half = total(step_traffic(config_, placement, narrow), "reduce");
    EXPECT_EQ(half.inside * 2, all.inside);
    EXPECT_EQ(half.between * 2, all.between);
  }
}

INSTANTIATE_TEST_SUITE_P(Worlds, EveryWorld,
                         testing::Values(World{1, 1, 0}, World{2, 1, 0}, World{2, 1, 1}, World{3, 1, 1}, World{3, 1, 2},
                                         World{4, 2, 2}, World{4, 1, 2}, World{6, 2, 2}, World{6, 1, 3}, World{8, 4, 4},
                                         World{8, 2, 4}, World{3, 3, 0}, World{6, 3, 3}, World{12, 3, 6}));

TEST(Traffic, BackwardChoicesTakeAwayExactlyTheirBuckets) {
  config::Config config;
  config.parallel.ranks = 4;
  config.topology.ranks_per_node = 2;
  config.model.layers = 3;
  config.data.rows_per_step = 4;
  placement::Placement placement = placement::build(config, 1);
  TrafficChoices choices = choices_of(config);
  auto backward = [&] { return total(step_traffic(config, placement, choices), "gather, backward"); };
  auto of = [&](const std::string& bucket) {
    return gather_traffic(config, placement, placement.buckets[placement.bucket(bucket)], choices);
  };
  Moved least = backward();
  choices.reuse_embedding = false;
  EXPECT_EQ(backward().all(), least.all() + of("embed").all());
  choices.reuse_embedding = true;
  choices.keep_last = false;
  EXPECT_EQ(backward().all(), least.all() + of("layer.2.dense").all() + of("layer.2.experts").all() + of("head").all());
  choices.dense_reshard = Reshard::node;
  Moved experts;
  experts += of("layer.1.experts");
  experts += of("layer.2.experts");
  EXPECT_EQ(backward().between, experts.between);
}

TEST(Traffic, Fp8ExpertsTakeOneByteAValueAndFourABlock) {
  config::Config config = reference();
  placement::Placement placement = placement::build(config, 0);
  TrafficChoices bf16 = choices_of(config), fp8 = bf16;
  fp8.expert_gather = config::ParameterWire::fp8;
  const placement::Bucket& experts = placement.buckets[placement.bucket("layer.5.experts")];
  double wide = static_cast<double>(gather_traffic(config, placement, experts, bf16).between);
  double narrow = static_cast<double>(gather_traffic(config, placement, experts, fp8).between);
  EXPECT_DOUBLE_EQ(narrow / wide, (1 + 4.0 / 128) / 2);  // 128 divides the rows
}

}  // namespace
}  // namespace ganymede::plan
