#include "common/plan/matrix_updates.h"

#include <gtest/gtest.h>

#include "common/plan/builder.h"
#include "common/plan/cost/cost_table.h"
#include "common/plan/pool.h"
#include "tests/support/builtin_facts.h"
#include "tests/unit/plan/plans.h"

/// The end of a step that updates whole matrices.
namespace ganymede::plan {
namespace {

config::Config muon(int ranks, int per_node = 2) {
  config::Config config = base(ranks, per_node);
  config.model.experts = 6;
  config.optimizer.name = "muon";
  config.optimizer.groups[config::rest_group].optimizer = "adamw";
  return config;
}

placement::Placement placed(const config::Config& config, int rank) {
  return placement::build(config, rank, builtin_facts());
}

TEST(MatrixUpdates, FollowTheDecisionAndAreAPlanOfTheirOwn) {
  for (int ranks : {1, 2, 3, 4, 6}) {
    config::Config config = muon(ranks);
    for (int rank = 0; rank < ranks; ++rank) {
      placement::Placement placement = placed(config, rank);
      StepPlan whole = build(config, placement, PlanKind::train), end = build(config, placement, PlanKind::update);
      check(whole);
      check(end);
      int decided = of_kind(whole, OperationKind::decide).front();
      std::vector<int> tail = of_kind(whole, OperationKind::orthogonalise);
      EXPECT_EQ(tail.size(), 7u) << "the dense buckets of four layers and the experts of three";
      EXPECT_GT(tail.front(), decided);
      for (OperationKind kind :
           {OperationKind::update_send, OperationKind::orthogonalise, OperationKind::update_return}) {
        EXPECT_EQ(of_kind(whole, kind).size(), of_kind(end, kind).size());
      }
      EXPECT_LE(end.pool_bytes, pool_bytes(config, placement));
    }
  }
}

/// Nothing waits for the rows of another bucket: while one is orthogonalised, the next one's travel.
TEST(MatrixUpdates, TheNextBucketTravelsWhileOneIsOrthogonalised) {
  config::Config config = muon(3);
  StepPlan plan = build(config, placed(config, 0), PlanKind::update);
  std::vector<int> sends = of_kind(plan, OperationKind::update_send);
  std::vector<int> computed = of_kind(plan, OperationKind::orthogonalise);
  ASSERT_GT(sends.size(), 2u);
  auto known = known_complete(plan);
  for (std::size_t i = 1; i < sends.size(); ++i) {
    int bucket = plan.operations[static_cast<std::size_t>(sends[i])].bucket;
    for (int one : computed) {
      if (one <= sends[i] || plan.operations[static_cast<std::size_t>(one)].bucket == bucket) continue;
      EXPECT_LT(known[static_cast<std::size_t>(one)][static_cast<std::size_t>(Lane::exchange)], sends[i])
          << "operation " << one << " waits for the rows of bucket " << bucket;
      break;
    }
  }
}

TEST(MatrixUpdates, OneRankSendsNothing) {
  config::Config config = muon(1);
  StepPlan plan = build(config, placed(config, 0), PlanKind::train);
  EXPECT_TRUE(of_kind(plan, OperationKind::update_send).empty());
  EXPECT_FALSE(of_kind(plan, OperationKind::orthogonalise).empty());
}

TEST(MatrixUpdates, WithoutMatricesThereIsNone) {
  config::Config config = base();
  StepPlan plan = build(config, placed(config, 0), PlanKind::update);
  EXPECT_TRUE(plan.operations.empty());
}

void expect_closed_form(const config::Config& config) {
  for (int rank = 0; rank < config.parallel.ranks; ++rank) {
    placement::Placement placement = placed(config, rank);
    TrafficChoices choices = choices_of(config);
    OperationTraffic traffic(config, placement, choices);
    Moved send, bring_back;
    for (const Operation& operation : build(config, placement, PlanKind::update).operations) {
      Moved moved = traffic.of(operation);
      EXPECT_EQ(moved.all(), operation.lane == Lane::exchange ? operation.bytes : 0);
      if (operation.kind == OperationKind::update_send) send += moved;
      if (operation.kind == OperationKind::update_return) bring_back += moved;
    }
    auto lines = step_traffic(config, placement, choices);
    EXPECT_EQ(send.between, total(lines, "update_send").between);
    EXPECT_EQ(send.inside, total(lines, "update_send").inside);
    EXPECT_EQ(bring_back.all(), total(lines, "update_return").all());
    EXPECT_GT(send.all() + bring_back.all(), 0);
  }
}

TEST(MatrixUpdates, OperationsSendWhatTheClosedFormSays) {
  config::Config config = muon(6);
  expect_closed_form(config);
  config.optimizer.name = "normuon";
  expect_closed_form(config);
}

/// Bytes of the bucket's buffer of a kind; 0: it has none.
std::int64_t buffer_bytes(const StepPlan& plan, std::size_t bucket, BufferKind kind) {
  for (const Buffer& buffer : plan.buffers)
    if (buffer.kind == kind && buffer.bucket == static_cast<int>(bucket)) return buffer.bytes;
  return 0;
}

std::int64_t rounded(std::int64_t elements) {
  return (elements * 4 + buffer_alignment - 1) / buffer_alignment * buffer_alignment;
}

/// Four bytes a row there and back, in the buffers of the exchange and of the whole matrices; nothing else changes.
TEST(MatrixUpdates, ValuesOfRowsAreInTheBuffersAndInWhatIsSent) {
  config::Config config = muon(3), with = config;
  with.optimizer.name = "normuon";
  for (int rank = 0; rank < 3; ++rank) {
    placement::Placement placement = placed(with, rank);
    StepPlan without = build(config, placed(config, rank), PlanKind::update);
    StepPlan plan = build(with, placement, PlanKind::update);
    EXPECT_EQ(plan.operations.size(), without.operations.size());
    std::vector<placement::BucketMatrices> all = placement::matrices_of(placement);
    std::int64_t travelling = 0;
    for (std::size_t b = 0; b < all.size(); ++b) {
      int own = placement.buckets[b].index_in_group;
      std::int64_t gathered = 0, out = 0, in = 0;  // elements and values of rows
      for (const placement::Matrix& matrix : all[b].matrices) {
        if (matrix.parts.size() == 1) continue;
        std::int64_t row = matrix.columns + 1;
        gathered += matrix.owner == own ? matrix.rows * row : 0;
        for (const placement::MatrixPart& part : matrix.parts) {
          out += part.member == own && matrix.owner != own ? part.rows * row : 0;
          in += part.member != own && matrix.owner == own ? part.rows * row : 0;
        }
      }
      EXPECT_EQ(buffer_bytes(plan, b, BufferKind::matrices), rounded(gathered));
      EXPECT_EQ(buffer_bytes(plan, b, BufferKind::orthogonal), rounded(gathered));
      EXPECT_EQ(buffer_bytes(plan, b, BufferKind::rows_out), rounded(out));
      EXPECT_EQ(buffer_bytes(plan, b, BufferKind::rows_in), rounded(in));
      EXPECT_EQ(buffer_bytes(plan, b, BufferKind::scratch), buffer_bytes(without, b, BufferKind::scratch));
      travelling += out + in;
    }
    EXPECT_GT(travelling, 0);
  }
}

}  // namespace
}  // namespace ganymede::plan
