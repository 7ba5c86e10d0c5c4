#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <thread>

#include "common/base/error.h"
#include "common/base/hash.h"
#include "common/os/futex.h"
#include "common/step_protocol/snapshot_machine.h"
#include "tests/unit/engine/test_world.h"

namespace ganymede::worker {
namespace {

TEST(Engine, LearnsTextThatCanBeLearned) {
  TestWorld one(world(1));
  std::vector<double> losses = one.losses(40);
  EXPECT_NEAR(losses[0], std::log(32.0), 0.1);
  EXPECT_LT(losses.back(), 0.7 * losses.front());
  EXPECT_LT(one.validate(40), 0.8 * losses.front());
}

TEST(Engine, LearnsInBfloat16) {
  config::Config config = world(2);
  config.compute.dtype = config::Dtype::bf16;
  config.wire.dense_gather = config.wire.expert_gather = config::ParameterWire::bf16;
  std::vector<double> losses = TestWorld(config).losses(30);
  EXPECT_NEAR(losses[0], std::log(32.0), 0.1);
  EXPECT_LT(losses.back(), 0.8 * losses.front());
}

TEST(Engine, OffloadChangesNoBit) {
  config::Config config = world(2);
  TestWorld kept(config);
  std::vector<double> expected = kept.losses(4);
  for (double fraction : {0.5, 1.0}) {
    config.offload.fraction = fraction;
    TestWorld offloaded(config);
    EXPECT_EQ(offloaded.losses(4), expected) << fraction;
    EXPECT_EQ(offloaded.parameters(), kept.parameters()) << fraction;
  }
}

TEST(Engine, MeasuredPeakIsThePredictedOne) {
  for (double fraction : {0.0, 0.5, 1.0}) {
    for (int ranks : {1, 3}) {
      config::Config config = world(ranks);
      config.offload.fraction = fraction;
      StepResult result = TestWorld(config).step(1);
      EXPECT_EQ(result.measured_peak, result.predicted_peak);
      EXPECT_GE(result.pool_bytes, result.measured_peak);
    }
  }
}

TEST(Engine, AsManyRanksAsRowsGiveTheBitsOfOneRank) {
  config::Config config = world(1);
  config.data.rows_per_step = 4;
  TestWorld one(config);
  config.parallel.ranks = 4;
  TestWorld four(config);
  config.parallel.replicas = 4;  // whole models: their sum is in rank order as well
  TestWorld copies(config);
  for (std::uint64_t s = 1; s <= 4; ++s) {
    StepResult a = one.step(s), b = four.step(s), c = copies.step(s);
    EXPECT_EQ(a.record.loss_sum, b.record.loss_sum);
    EXPECT_EQ(a.record.grad_norm, b.record.grad_norm);
    EXPECT_EQ(a.record.checksum, b.record.checksum);
    EXPECT_EQ(a.record.checksum, c.record.checksum);
    EXPECT_EQ(one.gradients(), four.gradients());
    EXPECT_EQ(one.gradients(), copies.gradients());
  }
  EXPECT_EQ(one.parameters(), four.parameters());
  EXPECT_EQ(one.parameters(), copies.parameters());
  EXPECT_EQ(one.validate(4), four.validate(4));
}

TEST(Engine, ReplicasHoldTheSameBits) {
  TestWorld six(world(6, 1, 2));
  six.losses(3);
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_THAT(six.cell(rank).master(), testing::ElementsAreArray(six.cell(rank + 3).master()));
    EXPECT_THAT(six.cell(rank).gradients(), testing::ElementsAreArray(six.cell(rank + 3).gradients()));
  }
}

TEST(Engine, StateShardedOverReplicasChangesNoBit) {
  for (auto [ranks, expert_group, replicas] : {std::tuple{4, 1, 4}, {6, 1, 2}, {4, 2, 2}}) {
    config::Config config = world(ranks, expert_group, replicas);
    TestWorld replicated(config);
    config.replicas.state = config::ReplicaState::sharded;
    TestWorld sharded(config);
    EXPECT_LT(sharded.cell(0).master().size(), replicated.cell(0).master().size() * 6 / 5 / replicas);
    EXPECT_LT(sharded.cell(0).gradients().size(), replicated.cell(0).gradients().size() * 6 / 5 / replicas);
    for (std::uint64_t s = 1; s <= 3; ++s) {
      EXPECT_EQ(replicated.step(s).record.checksum, sharded.step(s).record.checksum);
    }
    EXPECT_EQ(replicated.parameters(), sharded.parameters());
    EXPECT_EQ(replicated.validate(3), sharded.validate(3));
  }
}

TEST(Engine, SlicesOfReplicasComeTogetherInFp8) {
  config::Config config = world(4, 1, 2);
  config.wire.expert_gather = config::ParameterWire::fp8;
  TestWorld replicated(config);
  config.replicas.state = config::ReplicaState::sharded;
  TestWorld sharded(config);
  EXPECT_EQ(replicated.losses(3), sharded.losses(3));
}

struct Shape {
  int ranks, expert_group, replicas = 1;
};
class OtherWorlds : public testing::TestWithParam<Shape> {};

TEST_P(OtherWorlds, FollowTheCurveOfOneRank) {
  TestWorld one(world(1)), other(world(GetParam().ranks, GetParam().expert_group, GetParam().replicas));
  for (std::uint64_t s = 1; s <= 5; ++s) {
    double a = loss(one.step(s)), b = loss(other.step(s));
    EXPECT_NEAR(a, b, 1e-6 * a) << "step " << s;
  }
  EXPECT_NEAR(one.validate(5), other.validate(5), 1e-5);
}

TEST_P(OtherWorlds, CountTheSameTokensOfEachExpert) {
  TestWorld one(world(1)), other(world(GetParam().ranks, GetParam().expert_group, GetParam().replicas));
  one.step(1);
  other.step(1);
  auto expected = one.cell(0).control().expert_counts;
  std::int64_t all = std::accumulate(expected.begin(), expected.end(), std::int64_t{0});
  EXPECT_EQ(all, 2 * 12 * 24 * 2) << "two layers, rows, tokens, top 2";
  for (int rank = 0; rank < other.size(); ++rank) {
    auto counts = other.cell(rank).control().expert_counts;
    EXPECT_TRUE(std::equal(counts.begin(), counts.end(), expected.begin(), expected.end()));
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, OtherWorlds,
                         testing::Values(Shape{2, 1}, Shape{3, 1}, Shape{2, 2}, Shape{4, 2}, Shape{6, 2},
                                         Shape{6, 1, 2}, Shape{4, 2, 2},
                                         // places of two experts and of one
                                         Shape{3, 3}, Shape{6, 3}, Shape{6, 3, 2}));

TEST(Engine, EveryRankWritesTheSameIntactRecord) {
  TestWorld three(world(3));
  StepResult result = three.step(1);
  for (int rank = 0; rank < 3; ++rank) {
    const auto& control = three.cell(rank).control();
    const auto& record = control.block->record_of(1);
    EXPECT_TRUE(record.intact());
    EXPECT_EQ(record.checksum, result.record.checksum);
    EXPECT_EQ(record.counts_hash, hash64(std::as_bytes(control.expert_counts)));
    EXPECT_EQ(control.block->decided_step, 1u);
    for (const auto& word : control.gradients_ready) EXPECT_EQ(word, step_protocol::gradients_ready_word(1, 1));
  }
  EXPECT_EQ(result.record.optimizer_hash, 42u);
  EXPECT_EQ(result.record.apply, 1u);
}

TEST(Engine, AStepWithoutFiniteGradientsIsSkipped) {
  TestWorld two(world(2));
  two.cell(1).master()[3] = std::numeric_limits<float>::infinity();
  two.cell(1).publish_working_copy(0);
  StepResult result = two.step(1);
  EXPECT_EQ(result.record.apply, 0u);
}

TEST(Engine, ValidationChangesNothingThatTrainingUses) {
  TestWorld with(world(2)), without(world(2));
  for (std::uint64_t s = 1; s <= 3; ++s) {
    EXPECT_EQ(with.step(s).record.checksum, without.step(s).record.checksum);
    double first = with.validate(s), second = with.validate(s);
    EXPECT_EQ(first, second);
  }
}

TEST(Engine, DecidesOnlyWhenTheStepBeforeIsCommitted) {
  TestWorld one(world(1));
  one.step(1);
  auto& block = *one.cell(0).control().block;
  step_protocol::Word& chunks_done = one.cell(0).epoch().words->chunks_done;
  chunks_done -= 1;  // the last chunk of step 1 is not counted yet
  one.cell(0).serve(2);
  std::thread worker([&] { one.engine(0).train(2); });
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_EQ(block.decided_step, 1u);
  os::store_and_wake(chunks_done, one.cell(0).placement().chunks.size());
  worker.join();
  EXPECT_EQ(block.decided_step, 2u);
}

/// The first step is the last one, and a snapshot is under way on the last rank.
struct LastStep {
  explicit LastStep(int ranks) : whole(config(ranks)), cell(whole.cell(ranks - 1)) {
    cell.control().block->snapshot = step_protocol::armed_word(0);
  }
  static config::Config config(int ranks) {
    config::Config made = world(ranks);
    made.run.steps = 1;
    made.launch.collective_timeout_seconds = 1;
    made.launch.heartbeat_timeout_seconds = 0.1;
    return made;
  }
  TestWorld whole;
  TestCell& cell;
};

TEST(Engine, LastStepWaitsAsLongAsASnapshotMakesProgress) {
  LastStep last(2);
  std::thread checkpoint_service([&] {
    for (int value = 0; value < 35; ++value) {  // far longer than any timeout
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      ++last.cell.control().services[static_cast<int>(service::Kind::checkpoint)].progress;
    }
    EXPECT_EQ(last.cell.control().block->decided_step, 0u);
    os::store_and_wake(last.cell.control().block->snapshot, step_protocol::ended_word(0));
  });
  StepResult result = last.whole.step(1);
  checkpoint_service.join();
  EXPECT_EQ(result.record.stop_after, 1u);
  EXPECT_EQ(result.record.snapshot_after, 1u);
}

TEST(Engine, LastStepDoesNotWaitForAStuckSnapshot) {
  LastStep last(1);
  last.cell.serve(1);
  try {
    last.whole.engine(0).train(1);
    FAIL() << "did not throw";
  } catch (const OperationFailed& failed) {
    EXPECT_THAT(failed.what(), testing::HasSubstr("is stuck"));
    EXPECT_THROW(std::rethrow_exception(failed.cause()), Error);
  }
}

TEST(Engine, CancelEndsAStepThatWaitsForItsBatch) {
  TestWorld one(world(1));
  std::thread person([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    one.engine(0).cancel("generation 2 has begun");
  });
  EXPECT_THROW(one.engine(0).train(1), Cancelled);
  person.join();
  EXPECT_EQ(one.cell(0).control().block->decided_step, 0u);
}

TEST(Engine, APeerThatNeverComesEndsTheStepWithACollectiveError) {
  config::Config config = world(2);
  config.launch.collective_timeout_seconds = 0.2;
  TestWorld two(config);
  two.cell(0).serve(1);
  try {
    two.engine(0).train(1);
    FAIL() << "did not throw";
  } catch (const OperationFailed& e) {
    EXPECT_THROW(std::rethrow_exception(e.cause()), collectives::CollectiveError) << e.what();
  }
}

TEST(Engine, ReportsLanesWaitsAndImbalance) {
  StepResult result = TestWorld(world(2)).step(1);
  EXPECT_GT(result.lanes[static_cast<int>(plan::Lane::compute)].busy_ms, 0);
  EXPECT_GT(result.waits_ms[static_cast<int>(WaitKind::collectives)], 0);
  EXPECT_GE(result.imbalance, 1);
  EXPECT_EQ(result.tokens, 12u * 24u);
}

}  // namespace
}  // namespace ganymede::worker
