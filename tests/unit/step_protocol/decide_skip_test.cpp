#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "common/step_protocol/worker_machine.h"

namespace ganymede::step_protocol {
namespace {

StepPolicy policy() {
  StepPolicy result;
  result.clip_norm = 1;
  result.last_step = 100;
  return result;
}

/// The record of the next step of two ranks, with this mean loss.
DecisionRecord next(const DecisionRecord& previous, double loss, const StepPolicy& policy, bool idle = true) {
  std::vector<Vote> votes(2);
  for (Vote& vote : votes) {
    vote.step = (previous.step == 0 ? policy.load_step : previous.step) + 1;
    vote.loss_sum = 5 * loss;
    vote.loss_tokens = 10;
    vote.norm_squared.add(0.25);
    vote.snapshot_idle = idle;
    vote.previous_record = previous.checksum;
  }
  DecisionRecord record = decide(votes, previous, policy);
  record.checksum = record.compute_checksum();
  return record;
}

StepPolicy without_outliers() {
  StepPolicy result = policy();
  result.skip = {.outlier_z = 6, .outlier_window = 8};
  return result;
}

TEST(DecideSkip, OutlyingStepIsSkippedAndIsNoPartOfWhatTheNextIsHeldAgainst) {
  DecisionRecord record;
  for (double loss : {2.0, 2.1, 1.9, 2.0}) record = next(record, loss, without_outliers());
  DecisionRecord skipped = next(record, 9, without_outliers());
  EXPECT_EQ(skipped.apply, 0u);
  EXPECT_EQ(skipped.skip_reason, static_cast<std::uint64_t>(SkipReason::loss));
  EXPECT_EQ(skipped.clip_factor, 1);
  EXPECT_EQ(skipped.statistics.steps, 4u);
  EXPECT_EQ(skipped.statistics.loss.mean, record.statistics.loss.mean);
  DecisionRecord again = next(skipped, 9, without_outliers());
  EXPECT_EQ(again.skipped_in_row, 2u);
  EXPECT_EQ(next(again, 2.05, without_outliers()).apply, 1u);
  EXPECT_EQ(next(record, 9, policy()).apply, 1u) << "that is another policy";
}

TEST(DecideSkip, RunThatGoesOnFromACheckpointHasItsStatistics) {
  DecisionRecord undisturbed;
  for (double loss : {2.0, 2.1, 1.9, 2.0, 2.2}) undisturbed = next(undisturbed, loss, without_outliers());
  StepPolicy loaded = without_outliers();
  loaded.load_step = 5;
  loaded.loaded_statistics = undisturbed.statistics;
  EXPECT_EQ(next({}, 9, loaded).apply, 0u);
  DecisionRecord there = next(undisturbed, 2.1, without_outliers()), here = next({}, 2.1, loaded);
  EXPECT_EQ(here.statistics.loss.mean, there.statistics.loss.mean);
  EXPECT_EQ(here.statistics.loss.variance, there.statistics.loss.variance);
  loaded.loaded_statistics = {};
  EXPECT_EQ(next({}, 9, loaded).apply, 1u);
}

TEST(DecideSkip, PolicyStopAppliesNothingUntilTheRunCanEnd) {
  StepPolicy stop = policy();
  stop.skip.stop_on_non_finite = true;
  DecisionRecord good = next({}, 2, stop);
  DecisionRecord bad = next(good, std::nan(""), stop, false);
  EXPECT_EQ(bad.apply, 0u);
  EXPECT_EQ(bad.stop_after, 0u) << "a snapshot is under way";
  DecisionRecord waiting = next(bad, 2, stop, false);
  EXPECT_EQ(waiting.apply, 0u);
  EXPECT_EQ(waiting.stop_after, 0u);
  DecisionRecord last = next(waiting, 2, stop);
  EXPECT_EQ(last.apply, 0u);
  EXPECT_EQ(last.stop_after, 1u);
  EXPECT_EQ(last.snapshot_after, 1u);
  EXPECT_EQ(last.skipped_in_row, 3u);
  EXPECT_EQ(next(good, std::nan(""), stop).stop_after, 1u) << "at once where it can";
}

TEST(DecideSkip, ListedStepSaysNothingAboutHowTheRunIsDoing) {
  StepPolicy limited = without_outliers(), listed = limited;
  limited.stop_after_skips = listed.stop_after_skips = 2;
  listed.skip.listed = true;
  DecisionRecord before = next(next({}, 2, limited), std::nan(""), limited), record = before;
  for (int i = 0; i < 5; ++i) {
    record = next(record, 0, listed);
    EXPECT_EQ(record.apply, 0u);
    EXPECT_EQ(record.stop_after, 0u);
    EXPECT_EQ(record.skipped_in_row, 1u) << "as many as before";
    EXPECT_EQ(record.updates, before.updates);
    EXPECT_EQ(record.statistics.steps, before.statistics.steps);
    EXPECT_TRUE(std::isnan(record.loss_sum)) << "nobody has computed one";
    EXPECT_TRUE(std::isnan(record.grad_norm));
    EXPECT_TRUE(record.intact());
  }
  EXPECT_EQ(next(record, std::nan(""), limited).stop_after, 1u);
}

TEST(DecideSkip, RunEndsAfterSoManySkippedStepsInARowOfWhateverKind) {
  StepPolicy limited = without_outliers();
  limited.stop_after_skips = 3;
  DecisionRecord record;
  for (double loss : {2.0, 2.1, 1.9, 2.0, std::nan(""), 9.0, 2.0, 9.0, std::nan("")}) {
    record = next(record, loss, limited);
    EXPECT_EQ(record.stop_after, 0u) << record.step;
  }
  EXPECT_EQ(record.skipped_in_row, 2u);
  record = next(record, 9, limited);
  EXPECT_EQ(record.skipped_in_row, 3u);
  EXPECT_EQ(record.stop_after, 1u);
}

}  // namespace
}  // namespace ganymede::step_protocol
