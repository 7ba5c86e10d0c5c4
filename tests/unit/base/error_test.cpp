#include "common/base/error.h"

#include <gtest/gtest.h>

#include "common/base/deadline.h"

namespace ganymede {
namespace {

TEST(Fail, CarriesTextAndExitCode) {
  try {
    fail("{} has {} bytes", "a.bin", 3);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ExitCode::failed);
    EXPECT_STREQ(e.what(), "a.bin has 3 bytes");
  }
  try {
    fail_usage("bad");
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ExitCode::usage);
  }
}

TEST(CheckDeathTest, EndsTheProcessWithPlaceAndReason) {
  int chunks = 3;
  EXPECT_DEATH(GANYMEDE_CHECK(chunks == 4, "{} chunks", chunks), "error_test.cpp:[0-9]+: .*3 chunks");
}

TEST(Deadline, LeftIsNeverNegative) {
  auto past = Deadline::after(std::chrono::seconds(-1));
  EXPECT_TRUE(past.passed());
  EXPECT_EQ(past.left().count(), 0);
  auto later = Deadline::after_seconds(1000);
  EXPECT_FALSE(later.passed());
  EXPECT_GT(later.left(), std::chrono::seconds(900));
}

}  // namespace
}  // namespace ganymede
