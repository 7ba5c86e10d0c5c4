#include "common/step_protocol/skip.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "common/step_protocol/snapshot_statistics.h"

namespace ganymede::step_protocol {
namespace {

constexpr SkipRules outliers = {.outlier_z = 6, .outlier_window = 8};

StepStatistics after(const std::vector<double>& losses, std::uint64_t window = 8) {
  StepStatistics statistics;
  for (double loss : losses) statistics = with_step(statistics, loss, 10 * loss, window);
  return statistics;
}

TEST(StepStatistics, AreMeanAndVarianceOfAllStepsAtFirst) {
  StepStatistics statistics = after({1, 2, 3, 4}, 1000);
  EXPECT_EQ(statistics.steps, 4u);
  EXPECT_DOUBLE_EQ(statistics.loss.mean, 2.5);
  EXPECT_DOUBLE_EQ(statistics.loss.variance, 1.25);
  EXPECT_DOUBLE_EQ(statistics.grad_norm.mean, 25);
  EXPECT_DOUBLE_EQ(statistics.grad_norm.variance, 125);
}

TEST(StepStatistics, ForgetExponentiallyOnceHalfOfTheWindowIsOver) {
  StepStatistics statistics = after({1, 2, 3, 4, 7});  // the fifth counts 2/9, not 1/5
  EXPECT_DOUBLE_EQ(statistics.loss.mean, 2.5 + 2.0 / 9 * 4.5);
  EXPECT_DOUBLE_EQ(statistics.loss.variance, 7.0 / 9 * (1.25 + 2.0 / 9 * 4.5 * 4.5));
  for (int i = 0; i < 200; ++i) statistics = with_step(statistics, 3, 30, 8);
  EXPECT_DOUBLE_EQ(statistics.loss.mean, 3);
  EXPECT_NEAR(statistics.loss.variance, 0, 1e-15);
}

TEST(StepStatistics, BeginAnewWhereASquareIsBeyondADouble) {
  StepStatistics statistics = after({1, 2, 3, 4});
  EXPECT_EQ(with_step(statistics, 3, 1e200, 8).steps, 0u);
  EXPECT_EQ(with_step(with_step(statistics, 3, 1e200, 8), 3, 30, 8).loss.mean, 3);
}

TEST(Deviations, AreCountedAboveTheMeanAlone) {
  EXPECT_DOUBLE_EQ(deviations_above({.mean = 2, .variance = 0.25}, 3), 2);
  EXPECT_EQ(deviations_above({.mean = 2, .variance = 0.25}, 1), 0);
  EXPECT_EQ(deviations_above({.mean = 2, .variance = 0.25}, 2), 0);
}

TEST(Deviations, WithoutVarianceAreThousandthsOfTheMean) {
  EXPECT_NEAR(deviations_above({.mean = 2, .variance = 0}, 2.01), 5, 1e-9);
  EXPECT_EQ(deviations_above({.mean = 0, .variance = 0}, 1), 0) << "nothing was learnt yet, so it may begin";
}

TEST(Skip, AnOutlyingLossOrNormIsSkippedAndTheLossIsNamedFirst) {
  StepStatistics before = after({2, 2.2, 1.8, 2.1, 1.9, 2});
  auto why = [&](double loss, double norm) {
    return why_skipped({.loss = loss, .grad_norm = norm}, before, SkipReason::none, outliers);
  };
  EXPECT_EQ(why(2.3, 23), SkipReason::none);
  EXPECT_EQ(why(9, 23), SkipReason::loss);
  EXPECT_EQ(why(2.3, 90), SkipReason::grad_norm);
  EXPECT_EQ(why(9, 90), SkipReason::loss);
  EXPECT_EQ(why(0, 0), SkipReason::none) << "small is no outlier";
}

TEST(Skip, TheLimitIsAsManyDeviationsAsTheRulesSay) {
  StepStatistics before = after({2, 2.2, 1.8, 2.1, 1.9, 2});
  double limit = before.loss.mean + 6 * std::sqrt(before.loss.variance);
  auto why = [&](double loss) {
    return why_skipped({.loss = loss, .grad_norm = 20}, before, SkipReason::none, outliers);
  };
  EXPECT_EQ(why(limit * (1 - 1e-12)), SkipReason::none);
  EXPECT_EQ(why(limit * (1 + 1e-12)), SkipReason::loss);
}

TEST(Skip, NoStepIsOutlyingBeforeHalfOfTheWindowOrWithoutTheRule) {
  VoteSum large = {.loss = 1e6, .grad_norm = 1e6};
  EXPECT_EQ(why_skipped(large, after({2, 2.1, 1.9}), SkipReason::none, outliers), SkipReason::none);
  EXPECT_EQ(why_skipped(large, after({2, 2.1, 1.9, 2}), SkipReason::none, outliers), SkipReason::loss);
  EXPECT_EQ(why_skipped(large, after({2, 2.1, 1.9, 2}), SkipReason::none, {}), SkipReason::none);
}

TEST(Skip, WhatIsNotFiniteIsSkippedUnderEveryRule) {
  constexpr double infinite = std::numeric_limits<double>::infinity();
  for (const SkipRules& rules : {SkipRules{}, SkipRules{.stop_on_non_finite = true}, outliers}) {
    for (VoteSum bad : {VoteSum{.loss = std::nan("")}, VoteSum{.loss = infinite}, VoteSum{.grad_norm = infinite},
                        VoteSum{.grad_norm = std::nan("")}, VoteSum{.finite = false}})
      EXPECT_EQ(why_skipped(bad, after({2, 2, 2, 2}), SkipReason::none, rules), SkipReason::non_finite);
  }
}

TEST(Skip, AfterAStepThatEndsTheRunNothingIsApplied) {
  SkipRules stop = {.stop_on_non_finite = true};
  VoteSum sound = {.loss = 2, .grad_norm = 1};
  EXPECT_EQ(why_skipped(sound, {}, SkipReason::non_finite, stop), SkipReason::stopping);
  EXPECT_EQ(why_skipped(sound, {}, SkipReason::stopping, stop), SkipReason::stopping);
  EXPECT_EQ(why_skipped(sound, {}, SkipReason::none, stop), SkipReason::none);
  EXPECT_EQ(why_skipped(sound, {}, SkipReason::non_finite, {}), SkipReason::none);
}

TEST(Skip, StepThatIsListedIsSkippedWhateverItIsLike) {
  SkipRules listed = outliers;
  listed.listed = true;
  for (VoteSum step : {VoteSum{.loss = 2, .grad_norm = 1}, VoteSum{.loss = std::nan("")}, VoteSum{.finite = false}})
    EXPECT_EQ(why_skipped(step, {}, SkipReason::none, listed), SkipReason::listed);
  EXPECT_FALSE(ends_run(SkipReason::listed, {.stop_on_non_finite = true}));
  listed.stop_on_non_finite = true;
  EXPECT_EQ(why_skipped({}, {}, SkipReason::listed, listed), SkipReason::listed);
  EXPECT_EQ(why_skipped({}, {}, SkipReason::non_finite, listed), SkipReason::stopping) << "the run ends all the same";
}

TEST(Skip, IsDescribedWithItsFigures) {
  DecisionRecord record;
  EXPECT_EQ(describe_skip(record), "");
  record.loss_sum = 30;
  record.loss_tokens = 10;
  record.grad_norm = 31.24;
  record.statistics = {.steps = 9, .loss = {.mean = 2, .variance = 0.01}, .grad_norm = {.mean = 1.9, .variance = 4}};
  record.skip_reason = static_cast<std::uint64_t>(SkipReason::loss);
  EXPECT_EQ(describe_skip(record), "its loss 3 lies 10.0 standard deviations above the mean of the steps before, 2");
  record.skip_reason = static_cast<std::uint64_t>(SkipReason::grad_norm);
  EXPECT_THAT(describe_skip(record), testing::HasSubstr("gradient norm 31.24 lies 14.7 standard deviations"));
}

DecisionRecord snapshot_record(std::uint64_t step) {
  DecisionRecord record;
  record.step = step;
  record.snapshot_after = 1;
  record.statistics.steps = step;
  record.updates = step - 1;
  return record;
}

TEST(SnapshotStatistics, AreKeptForTheLastTwoSnapshots) {
  ControlBlock block{};
  EXPECT_FALSE(kept_statistics(block, 0));
  for (std::uint64_t step : {5u, 10u, 15u, 15u}) keep_statistics(block, snapshot_record(step));
  DecisionRecord plain = snapshot_record(16);
  plain.snapshot_after = 0;
  keep_statistics(block, plain);
  EXPECT_FALSE(kept_statistics(block, 5));
  ASSERT_TRUE(kept_statistics(block, 10));
  EXPECT_EQ(kept_statistics(block, 10)->statistics.steps, 10u);
  EXPECT_EQ(kept_statistics(block, 10)->updates, 9u);
  ASSERT_TRUE(kept_statistics(block, 15));
  EXPECT_FALSE(kept_statistics(block, 16));
}

TEST(SnapshotStatistics, AreWrittenAgainAfterAKillWhileTheyWere) {
  for (int torn : {0, 1}) {
    ControlBlock block{};
    for (std::uint64_t step : {5u, 10u}) keep_statistics(block, snapshot_record(step));
    std::uint64_t other = block.snapshot_statistics[1 - torn].step;
    block.snapshot_statistics[torn].statistics.loss.mean = 77;
    EXPECT_FALSE(kept_statistics(block, block.snapshot_statistics[torn].step));
    keep_statistics(block, snapshot_record(15));
    EXPECT_TRUE(kept_statistics(block, 15));
    EXPECT_TRUE(kept_statistics(block, other)) << "the whole one stays";
  }
}

}  // namespace
}  // namespace ganymede::step_protocol
