#include "launcher/keeper/ended_launcher.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace ganymede::keeper {
namespace {

TEST(EndedLauncher, IsToldToTheNextOne) {
  auto [variable, value] = tell_of({.signal = 9}, 1234.5);
  ::unsetenv(variable.c_str());
  EXPECT_FALSE(ended_launcher());
  ::setenv(variable.c_str(), value.c_str(), 1);
  auto before = ended_launcher();
  ASSERT_TRUE(before);
  EXPECT_DOUBLE_EQ(before->ended, 1234.5);
  EXPECT_EQ(before->cause, "killed by SIGKILL");
  for (const char* wrong : {"", "soon", "12"}) {
    ::setenv(variable.c_str(), wrong, 1);
    EXPECT_FALSE(ended_launcher()) << wrong;
  }
  ::unsetenv(variable.c_str());
}

}  // namespace
}  // namespace ganymede::keeper
