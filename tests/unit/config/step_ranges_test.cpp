#include "common/config/step_ranges.h"

#include <gtest/gtest.h>

namespace ganymede::config {
namespace {

TEST(StepRanges, AreOneStepOrFromOneToAnother) {
  auto range = read_step_range("120-135");
  ASSERT_TRUE(range);
  EXPECT_EQ(range->first, 120u);
  EXPECT_EQ(range->last, 135u);
  EXPECT_EQ(read_step_range("400")->last, 400u);
  EXPECT_EQ(read_step_range("7-7")->first, 7u);
  for (const char* text : {"", "-", "0", "3-2", "-3", "3-", "3--4", "3-4-5", " 3", "3 ", "3.0", "x", "1e3",
                           "99999999999999999999", "1000000000001"})
    EXPECT_FALSE(read_step_range(text)) << text;
}

TEST(StepRanges, ListTheStepsInThem) {
  std::vector<std::string> ranges = {"12-14", "20"};
  for (std::uint64_t step : {12u, 13u, 14u, 20u}) EXPECT_TRUE(lists_step(ranges, step)) << step;
  for (std::uint64_t step : {0u, 11u, 15u, 19u, 21u}) EXPECT_FALSE(lists_step(ranges, step)) << step;
  EXPECT_FALSE(lists_step({}, 1));
}

TEST(StepRanges, AreTooLateForWhatIsDoneUnlessTheyWereThereBefore) {
  EXPECT_EQ(too_late({"3"}, {"3", "12-14", "20"}, 12), "12-14");
  EXPECT_EQ(too_late({}, {"3", "12-14", "20"}, 30), "3, 12-14, 20");
  EXPECT_EQ(too_late({}, {"12-14"}, 11), "");
}

}  // namespace
}  // namespace ganymede::config
