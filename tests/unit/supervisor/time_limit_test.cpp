#include "launcher/supervisor/time_limit.h"

#include <gmock/gmock.h>

namespace ganymede::launcher {
namespace {

using testing::HasSubstr;

constexpr double now = 1.9e9, margin = 30;

TEST(TimeLimit, WithoutTheVariableNothingIsEverDue) {
  TimeLimit limit(nullptr, now, margin, 1e12);
  limit.step_took(1e6);
  EXPECT_EQ(limit.due(now + 1e9), std::nullopt);
  EXPECT_EQ(limit.warning(), "");
}

TEST(TimeLimit, IsDueWhenAStepASaveAndTheMarginDoNotFitAnyMore) {
  TimeLimit limit("1900000100", now, margin, 0);
  limit.step_took(10);
  limit.save_took(20);
  EXPECT_EQ(limit.warning(), "");
  EXPECT_EQ(limit.due(now + 39.9), std::nullopt);
  auto why = limit.due(now + 40);
  ASSERT_TRUE(why);
  for (const char* part :
       {"SLURM_JOB_END_TIME", "in 60 s", "up to 10 s", "up to 20 s", "30 s", "launch.end_margin_seconds"})
    EXPECT_THAT(*why, HasSubstr(part));
  EXPECT_TRUE(limit.due(now + 1000)) << "also when it is over";
}

TEST(TimeLimit, TheLongestOfTheLastStepsAndSavesCounts) {
  TimeLimit limit("1900000100", now, 0, 0);
  limit.step_took(50);
  limit.save_took(40);
  for (std::size_t i = 1; i < TimeLimit::steps_kept; ++i) limit.step_took(1);
  for (std::size_t i = 1; i < TimeLimit::saves_kept; ++i) limit.save_took(1);
  EXPECT_EQ(limit.due(now + 9), std::nullopt);
  EXPECT_TRUE(limit.due(now + 10));
  limit.step_took(1);
  EXPECT_EQ(limit.due(now + 58), std::nullopt) << "the long step is forgotten";
  limit.save_took(1);
  EXPECT_EQ(limit.due(now + 97), std::nullopt) << "and the long save";
  EXPECT_TRUE(limit.due(now + 98));
}

TEST(TimeLimit, BeforeTheFirstCheckpointItsBytesSayHowLongItTakes) {
  TimeLimit limit("1900000100", now, 0, 20 * TimeLimit::assumed_bytes_a_second);
  EXPECT_EQ(limit.due(now + 79), std::nullopt);
  ASSERT_TRUE(limit.due(now + 80));
  EXPECT_THAT(*limit.due(now + 80), HasSubstr("perhaps 20 s"));
  limit.save_took(1);
  EXPECT_EQ(limit.due(now + 98), std::nullopt);
}

TEST(TimeLimit, WhatIsNoTimeIsSaidAndNotFollowed) {
  for (const char* text :
       {"", "soon", "2026-11-30T23:00:00", "-5", "0", "nan", "inf", "1e300", "1900000100x", "0x70"}) {
    TimeLimit limit(text, now, margin, 0);
    EXPECT_THAT(limit.warning(), HasSubstr("no time in seconds since 1970")) << text;
    EXPECT_EQ(limit.due(now + 1e9), std::nullopt) << text;
  }
}

TEST(TimeLimit, ATimeThatIsOverAtTheStartIsSaidAndNotFollowed) {
  TimeLimit limit("1899999999", now, margin, 0);
  EXPECT_THAT(limit.warning(), HasSubstr("which is over"));
  EXPECT_EQ(limit.due(now), std::nullopt);
}

}  // namespace
}  // namespace ganymede::launcher
