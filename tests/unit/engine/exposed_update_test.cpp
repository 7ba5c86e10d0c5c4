#include "services/worker/engine/exposed_update.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "common/base/deadline.h"
#include "tests/unit/engine/test_world.h"

namespace ganymede::worker {
namespace {

using plan::Lane;
using plan::OperationKind;
using plan::Span;

/// One operation: where it is, when it runs, and how long it waits for words of the cell at its beginning.
struct Timed {
  OperationKind kind;
  Lane lane;
  double start = 0, end = 0, words = 0;
};

double exposed_ms(const std::vector<Timed>& operations) {
  plan::StepPlan plan;
  std::vector<Span> spans;
  for (const Timed& one : operations) {
    plan.operations.push_back({.kind = one.kind, .lane = one.lane});
    spans.push_back({one.start, one.end, {.words_ms = one.words, .collectives_ms = 0}});
  }
  return plan::sum_ms(exposed_update(plan, spans));
}

using enum OperationKind;

TEST(ExposedUpdate, IsTheWaitOfAGatherButNotItsTransfer) {
  EXPECT_EQ(exposed_ms({{gather, Lane::gather, 0, 100, 90}}), 90);
  EXPECT_EQ(exposed_ms({{gather, Lane::compute, 0, 100, 90}}), 90);
  EXPECT_EQ(exposed_ms({{gather, Lane::gather, 0, 100, 0}}), 0);
}

TEST(ExposedUpdate, IsTheWaitForTheWholeUpdateAtEitherEndOfAStep) {
  EXPECT_EQ(exposed_ms({{wait_update, Lane::host, 0, 50, 50}, {forward, Lane::compute, 50, 80}}), 50);
  EXPECT_EQ(exposed_ms({{backward, Lane::compute, 0, 50}, {wait_update, Lane::host, 30, 70, 40}}), 20);
}

TEST(ExposedUpdate, IsNothingWhileSomethingIsComputedOrTransferred) {
  EXPECT_EQ(exposed_ms({{gather, Lane::gather, 0, 100, 90}, {forward, Lane::compute, 20, 50}}), 60);
  EXPECT_EQ(exposed_ms({{gather, Lane::gather, 0, 100, 90}, {reduce, Lane::reduce, 80, 120}}), 80);
  EXPECT_EQ(exposed_ms({{gather, Lane::gather, 0, 100, 90}, {forward, Lane::compute, 0, 100}}), 0);
}

TEST(ExposedUpdate, IsNothingWhileTheBatchIsNotThereEither) {
  EXPECT_EQ(exposed_ms({{wait_batch, Lane::host, 0, 40, 40}, {gather, Lane::gather, 0, 60, 50}}), 10);
  EXPECT_EQ(exposed_ms({{wait_batch, Lane::host, 0, 40, 40}}), 0);
  EXPECT_EQ(exposed_ms({{vote, Lane::host, 0, 40, 40}}), 0) << "for a snapshot, before the last vote";
}

TEST(ExposedUpdate, CountsWaitsAtTheSameTimeOnce) {
  EXPECT_EQ(exposed_ms({{gather, Lane::gather, 0, 30, 30}, {wait_update, Lane::host, 10, 50, 40}}), 50);
}

/// Step 2 of a rank, beside an update of step 1 whose chunks the test counts one by one.
class UpdateBesideAStep : public testing::Test {
 protected:
  static config::Config config(bool stream) {
    config::Config made = tiny_config();
    made.model.vocabulary = 2048;  // several chunks in the first bucket
    made.stream_update = stream;
    return made;
  }

  /// Chunks that were done when the first forward began, held up at `pause` chunks until it has begun or, for
  /// `patience`, has not.
  std::uint64_t chunks_before_forward(bool stream, std::uint64_t pause, std::chrono::milliseconds patience) {
    TestWorld one(config(stream));
    one.step(1);
    TestCell& cell = one.cell(0);
    cell.unpublish(1);
    cell.serve(2);
    std::thread worker([&] { result = one.engine(0).train(2); });
    for (Deadline deadline = Deadline::after(long_time); cell.waits() == 0 && !deadline.passed();)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_GT(cell.waits(), 0) << "nothing of the update is there";
    for (std::uint64_t done = 0; done < cell.placement().chunks.size(); ++done) {
      Deadline deadline = Deadline::after(patience);
      while (done == pause && cell.chunks_done_at_first(forward) == step_protocol::never && !deadline.passed())
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      cell.publish_chunk(1);
    }
    worker.join();
    EXPECT_EQ(cell.control().block->decided_step, 2u);
    return cell.chunks_done_at_first(forward);
  }

  std::uint64_t first_bucket() const {
    placement::Placement placement = placement::build(config(true), 0);
    return static_cast<std::uint64_t>(std::count_if(placement.chunks.begin(), placement.chunks.end(),
                                                    [](const auto& chunk) { return chunk.bucket == 0; }));
  }
  std::uint64_t all() const { return placement::build(config(true), 0).chunks.size(); }

  StepResult result;
  const std::chrono::milliseconds a_while{100};
  const std::chrono::seconds long_time{60};
};

TEST_F(UpdateBesideAStep, HoldsUpAStreamForTheFirstBucketAlone) {
  ASSERT_GT(first_bucket(), 2u);
  ASSERT_GT(all(), first_bucket() + 2);
  EXPECT_EQ(chunks_before_forward(true, first_bucket(), long_time), first_bucket()) << "no more is needed";
  EXPECT_GT(result.update_exposed_ms, 0);
  EXPECT_LE(result.update_exposed_ms, result.wall_ms);
  EXPECT_GE(chunks_before_forward(true, first_bucket() - 1, a_while), first_bucket()) << "and no less";
}

TEST_F(UpdateBesideAStep, HoldsUpAStepWithoutStreamForAllBuckets) {
  EXPECT_EQ(chunks_before_forward(false, all() - 1, a_while), all());
  EXPECT_GT(result.update_exposed_ms, 0);
}

TEST_F(UpdateBesideAStep, IsNotWaitedForWhenItIsDone) {
  for (bool stream : {true, false}) {
    TestWorld one(config(stream));
    one.step(1);
    EXPECT_EQ(one.step(2).update_exposed_ms, 0) << stream;
  }
}

}  // namespace
}  // namespace ganymede::worker
