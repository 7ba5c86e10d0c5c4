#include "launcher/keeper/ended_launcher.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace ganymede::keeper {
namespace {

TEST(EndedLauncher, IsToldToTheNextOne) {
  auto [variable, value] = tell_of({.ended = 1234.5, .detect = 5.25, .cause = "it was stopped for 5.2 s"});
  ::unsetenv(variable.c_str());
  EXPECT_FALSE(ended_launcher());
  ::setenv(variable.c_str(), value.c_str(), 1);
  auto before = ended_launcher();
  ASSERT_TRUE(before);
  EXPECT_DOUBLE_EQ(before->ended, 1234.5);
  EXPECT_DOUBLE_EQ(before->detect, 5.25);
  EXPECT_EQ(before->cause, "it was stopped for 5.2 s");
  for (const char* wrong : {"", "soon", "12", "12 killed"}) {
    ::setenv(variable.c_str(), wrong, 1);
    EXPECT_FALSE(ended_launcher()) << wrong;
  }
  ::unsetenv(variable.c_str());
}

}  // namespace
}  // namespace ganymede::keeper
