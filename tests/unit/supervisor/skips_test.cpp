#include "launcher/supervisor/skips.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>

namespace ganymede::launcher {
namespace {

using step_protocol::SkipReason;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(SkippedSteps, AreSaidButOfSeveralThatAreNotFiniteTheFirstAlone) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  Terminal shown(ends[1], false);
  Skips skips(shown);
  skips.take(1, SkipReason::none, "");
  for (std::uint64_t step : {2u, 3u}) skips.take(step, SkipReason::non_finite, "it is not finite");
  for (std::uint64_t step : {4u, 5u}) skips.take(step, SkipReason::grad_norm, "it is too large");
  skips.take(6, SkipReason::non_finite, "it is not finite");
  for (std::uint64_t step : {7u, 8u}) skips.take(step, SkipReason::listed, "it is listed");
  char text[4096] = {};
  ASSERT_GT(::read(ends[0], text, sizeof text - 1), 0);
  EXPECT_STREQ(text,
               "step 2 is skipped: it is not finite; the parameters stay as they were\n"
               "step 4 is skipped: it is too large; the parameters stay as they were\n"
               "step 5 is skipped: it is too large; the parameters stay as they were\n"
               "step 6 is skipped: it is not finite; the parameters stay as they were\n"
               "step 7 is skipped: it is listed; the parameters stay as they were\n");
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(SkippedSteps, AreCountedByReasonOverLaunches) {
  Terminal silent(-1, false);
  Skips skips(silent);
  skips.go_on_from({.steps = 7, .non_finite = 4, .loss = 2, .grad_norm = 1, .listed = 3});
  for (SkipReason reason :
       {SkipReason::non_finite, SkipReason::loss, SkipReason::grad_norm, SkipReason::listed, SkipReason::stopping})
    skips.take(9, reason, "");
  metrics::Record skipped;
  skips.write(skipped);
  EXPECT_EQ(skipped.json(),
            R"({"skipped": true, "skip_reason": "stopping", "skipped_steps": 12, "skipped_non_finite": 5, )"
            R"("skipped_loss": 3, "skipped_grad_norm": 2, "skipped_listed": 4})");
  skips.take(10, SkipReason::none, "");
  metrics::Record applied;
  skips.write(applied);
  EXPECT_THAT(applied.json(), AllOf(HasSubstr(R"("skipped": false, "skipped_steps": 12)"), Not(HasSubstr("reason"))));
}

step_protocol::DecisionRecord last_record(SkipReason reason, std::uint64_t in_row) {
  step_protocol::DecisionRecord record;
  record.step = 57;
  record.loss_sum = 90;
  record.loss_tokens = 10;
  record.statistics = {.steps = 40, .loss = {.mean = 2, .variance = 0.01}, .grad_norm = {}};
  record.skip_reason = static_cast<std::uint64_t>(reason);
  record.apply = reason == SkipReason::none;
  record.skipped_in_row = in_row;
  return record;
}

TEST(EndedBySkips, SaysWhichStepsWhyAndWhatToChange) {
  config::Optimizer optimizer;
  optimizer.stop_after_skips = 3;
  EXPECT_EQ(ended_by_skips(optimizer, last_record(SkipReason::none, 0)), "");
  EXPECT_EQ(ended_by_skips(optimizer, last_record(SkipReason::non_finite, 2)), "");
  EXPECT_THAT(ended_by_skips(optimizer, last_record(SkipReason::non_finite, 3)),
              AllOf(HasSubstr("The last 3 steps, up to 57, were skipped"), HasSubstr("not finite"),
                    HasSubstr("since step 54"), HasSubstr("optimizer.lr"), Not(HasSubstr("outlier_z"))));
  EXPECT_THAT(ended_by_skips(optimizer, last_record(SkipReason::loss, 3)),
              AllOf(HasSubstr("its loss 9 lies 70.0 standard deviations"), HasSubstr("optimizer.outlier_z")));
  auto two = last_record(SkipReason::non_finite, 2);
  EXPECT_THAT(ended_by_skips(optimizer, two, true), HasSubstr("The last 2 steps, up to 57, were skipped"));
  EXPECT_EQ(ended_by_skips(optimizer, last_record(SkipReason::non_finite, 1), true), "");
  optimizer.clip_norm = 0;
  EXPECT_THAT(ended_by_skips(optimizer, two, true), HasSubstr("Lower optimizer.lr or set optimizer.clip_norm"));
  optimizer.stop_after_skips = 0;
  EXPECT_EQ(ended_by_skips(optimizer, last_record(SkipReason::non_finite, 30)), "");
}

TEST(EndedBySkips, PolicyStopNamesTheStepAndWhereTheRunGoesOn) {
  config::Optimizer optimizer;
  optimizer.policy = config::SkipPolicy::stop;
  EXPECT_THAT(ended_by_skips(optimizer, last_record(SkipReason::stopping, 2)),
              AllOf(HasSubstr("gradients of step 56 were not finite"), HasSubstr("optimizer.policy"),
                    HasSubstr("since step 55"), HasSubstr("goes on with step 58")));
  EXPECT_EQ(ended_by_skips(optimizer, last_record(SkipReason::none, 0)), "");
}

}  // namespace
}  // namespace ganymede::launcher
