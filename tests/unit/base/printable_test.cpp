#include "common/base/printable.h"

#include <gtest/gtest.h>

namespace ganymede {
namespace {

TEST(Printable, IsOneLineWithoutEffectOnATerminal) {
  EXPECT_EQ(printable("a\nb\tc\x1b[31m\x7f"), "a\\nb\\tc\\x1b[31m\\x7f");
  EXPECT_EQ(printable("Größe 1"), "Größe 1");
  EXPECT_EQ(printable(""), "");
}

TEST(Printable, KnowsWhatWouldChange) {
  EXPECT_TRUE(has_controls("a\r"));
  EXPECT_FALSE(has_controls("a b, ü"));
}

}  // namespace
}  // namespace ganymede
