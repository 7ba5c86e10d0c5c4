#include "common/base/deadline.h"

#include <gtest/gtest.h>

namespace ganymede {
namespace {

using namespace std::chrono_literals;

TEST(SecondsSince, CountsFromAPointThatIsPast) {
  double span = seconds_since(Clock::now() - 1500ms);
  EXPECT_GE(span, 1.5);
  EXPECT_LT(seconds_since(Clock::now() + 10s), 0);
}

TEST(Deadline, LeavesNoNegativeTime) {
  Deadline past = Deadline::after(-1s), future = Deadline::after_seconds(1000);
  EXPECT_TRUE(past.passed());
  EXPECT_EQ(past.left(), 0ns);
  EXPECT_FALSE(future.passed());
  EXPECT_GT(future.left(), 900s);
}

}  // namespace
}  // namespace ganymede
