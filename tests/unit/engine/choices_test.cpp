#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "common/os/futex.h"
#include "common/plan/plan.h"
#include "tests/unit/engine/test_world.h"

namespace ganymede::worker {
namespace {

/// A switch of the plan. All but those that add in another order move data or time and nothing else.
struct Choice {
  const char* name;
  void (*set)(config::Config&);
  bool same_bits = true;
};

void reduce_each(config::Config& config) {
  config.micro_batch.rows = 2;
  config.micro_batch.reduce = config::MicroBatchReduce::each;
}

const Choice choices[] = {
    {"MicroBatchesOfOneRow", [](config::Config& c) { c.micro_batch.rows = 1; }},
    {"MicroBatchesThatDoNotDivideTheRows", [](config::Config& c) { c.micro_batch.rows = 2; }},
    {"ReducedEachMicroBatch", reduce_each, false},
    {"ReducedEachMicroBatchWithSlicesOfReplicas",
     [](config::Config& c) {
       reduce_each(c);
       c.replicas.state = config::ReplicaState::sharded;
       c.wire.dense_gradients = config::GradientWire::fp32_reduce_scatter;
     },
     false},
    {"KeepGathered", [](config::Config& c) { c.keep_gathered = true; }},
    {"KeepGatheredOverMicroBatches",
     [](config::Config& c) {
       c.keep_gathered = true;
       c.micro_batch.rows = 2;
       c.offload.fraction = 0.5;
     }},
    {"ReshardInTheNode", [](config::Config& c) { c.dense.reshard = config::Reshard::node; }},
    {"ReshardInTheNodeOverMicroBatches",
     [](config::Config& c) {
       c.dense.reshard = config::Reshard::node;
       c.micro_batch.rows = 1;
     }},
    {"GatherTheEmbeddingAgain", [](config::Config& c) { c.reuse_embedding = false; }},
    {"GatherTheEmbeddingAgainOverMicroBatches",
     [](config::Config& c) {
       c.reuse_embedding = false;
       c.dense.reshard = config::Reshard::node;
       c.micro_batch.rows = 2;
     }},
    {"NormAfterBackward", [](config::Config& c) { c.norm_in_backward = false; }},
    {"LateRelease", [](config::Config& c) { c.early_release = false; }},
    {"LateReleaseOverMicroBatches",
     [](config::Config& c) {
       c.early_release = false;
       c.micro_batch.rows = 2;
     }},
    {"GatherOnTheComputeLane", [](config::Config& c) { c.gather_on_compute_lane = true; }},
    {"GatherOnTheComputeLaneAllElseToo",
     [](config::Config& c) {
       c.gather_on_compute_lane = true;
       c.micro_batch.rows = 2;
       c.dense.reshard = config::Reshard::node;
       c.reuse_embedding = c.early_release = false;
     }},
    {"ReductionsApart", [](config::Config& c) { c.reduce_into_compute_pool = false; }},
    {"RotaryTablesOfEachLayer", [](config::Config& c) { c.rope_cache = config::RopeCache::per_layer; }},
    {"ForwardAfterAllUpdates", [](config::Config& c) { c.stream_update = false; }},
};

struct World {
  const char* name;
  int ranks, expert_group, per_node, replicas;
  bool fp8;
};
const World worlds[] = {{"One", 1, 1, 0, 1, false},
                        {"Two", 2, 1, 0, 1, false},
                        {"ThreeOnTwoNodes", 3, 1, 2, 1, false},
                        {"FourOnTwoNodes", 4, 2, 2, 1, true},
                        {"ThreeWithFourExperts", 3, 3, 0, 1, false},
                        {"FourReplicated", 4, 1, 2, 2, false}};

config::Config config_of(const World& world) {
  config::Config config = tiny_config();
  config.parallel.ranks = world.ranks;
  config.parallel.expert_group = world.expert_group;
  config.parallel.replicas = world.replicas;
  config.topology.ranks_per_node = world.per_node;
  config.validation.rows = 7;
  if (world.fp8) config.wire.expert_gather = config::ParameterWire::fp8;
  return config;
}

class Choices : public testing::TestWithParam<World> {};

TEST_P(Choices, ChangeNoBit) {
  config::Config plain = config_of(GetParam());
  TestWorld expected(plain);
  std::vector<std::uint64_t> records;
  for (std::uint64_t s = 1; s <= 2; ++s) records.push_back(expected.step(s).record.checksum);
  for (const Choice& choice : choices) {
    if (!choice.same_bits) continue;
    config::Config config = plain;
    choice.set(config);
    TestWorld other(config);
    for (std::uint64_t s = 1; s <= 2; ++s) {
      EXPECT_EQ(other.step(s).record.checksum, records[s - 1]) << choice.name << " step " << s;
    }
    EXPECT_EQ(other.gradients(), expected.gradients()) << choice.name;
    EXPECT_EQ(other.parameters(), expected.parameters()) << choice.name;
    EXPECT_EQ(other.validate(2), expected.validate(2)) << choice.name;
  }
}

TEST_P(Choices, ThatAddInAnotherOrderFollowTheCurve) {
  TestWorld expected(config_of(GetParam()));
  std::vector<double> losses = expected.losses(4);
  auto gradients = expected.gradients();
  for (const Choice& choice : choices) {
    if (choice.same_bits) continue;
    config::Config config = config_of(GetParam());
    choice.set(config);
    TestWorld other(config);
    for (std::uint64_t s = 1; s <= 4; ++s) {
      EXPECT_NEAR(loss(other.step(s)), losses[s - 1], 1e-6 * losses[s - 1]) << choice.name << " step " << s;
    }
    if (GetParam().ranks == 1) {
      EXPECT_EQ(other.gradients(), gradients) << "one rank adds its rows in place";
    }
  }
}

TEST_P(Choices, NeedTheMemoryAndMoveTheBytesThatThePlanSays) {
  for (const Choice& choice : choices) {
    config::Config config = config_of(GetParam());
    choice.set(config);
    TestWorld world(config);
    StepResult result = world.step(1);
    EXPECT_EQ(result.measured_peak, result.predicted_peak) << choice.name;
    EXPECT_GE(result.pool_bytes, result.measured_peak) << choice.name;
    EXPECT_EQ(result.rotary_bytes, plan::rotary_bytes(config)) << choice.name;
    for (int rank = 0; rank < world.size(); ++rank) {
      auto lines = plan::step_traffic(config, world.cell(rank).placement(), plan::choices_of(config));
      plan::Moved gathers = plan::total(lines, "gather, forward") + plan::total(lines, "gather, backward");
      plan::Moved counted = world.moved(rank, "gather");
      EXPECT_EQ(counted.inside, gathers.inside) << choice.name << " rank " << rank;
      EXPECT_EQ(counted.between, gathers.between) << choice.name << " rank " << rank;
      EXPECT_EQ(world.moved(rank, "reduce").all(), plan::total(lines, "reduce").all()) << choice.name;
      EXPECT_EQ(world.moved(rank, "replica_reduce").all(), plan::total(lines, "replica_reduce").all()) << choice.name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Worlds, Choices, testing::ValuesIn(worlds),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(StreamUpdate, OffWaitsForTheLastChunkBeforeItGathers) {
  config::Config config = tiny_config();
  config.stream_update = false;
  TestWorld one(config);
  one.step(1);
  auto& control = one.cell(0).control();
  step_protocol::Word& chunks_done = one.cell(0).epoch().words->chunks_done;
  chunks_done -= 1;  // every bucket is ready, but the update has not ended
  one.cell(0).serve(2);
  std::thread worker([&] { one.engine(0).train(2); });
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  for (const auto& word : control.gradients_ready) EXPECT_EQ(word, step_protocol::gradients_ready_word(1, 1));
  os::store_and_wake(chunks_done, one.cell(0).placement().chunks.size());
  worker.join();
  EXPECT_EQ(control.block->decided_step, 2u);
}

TEST(MicroBatches, NeedAnArenaOfTheirRows) {
  config::Config config = tiny_config();
  config.offload.fraction = 1;
  StepResult whole = TestWorld(config).step(1);
  config.micro_batch.rows = 3;
  TestWorld parts(config);
  StepResult result = parts.step(1);
  EXPECT_EQ(result.arena_bytes * 4, whole.arena_bytes);
  EXPECT_EQ(static_cast<std::int64_t>(parts.cell(0).segment("arena").span<std::byte>("values").size()),
            result.arena_bytes);
  EXPECT_LT(result.predicted_peak, whole.predicted_peak);
}

}  // namespace
}  // namespace ganymede::worker
