#include "common/base/text.h"

#include <gtest/gtest.h>

#include <limits>

namespace ganymede {
namespace {

TEST(HumanBytes, HasThreeDigitsAndAUnit) {
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(12), "12 B");
  EXPECT_EQ(human_bytes(1023), "1023 B");
  EXPECT_EQ(human_bytes(1024), "1 KiB");
  EXPECT_EQ(human_bytes(65536), "64 KiB");
  EXPECT_EQ(human_bytes(812.0 * 1024 * 1024), "812 MiB");
  EXPECT_EQ(human_bytes(1.2 * 1024 * 1024 * 1024), "1.2 GiB");
  EXPECT_EQ(human_bytes(1024.0 * 1024 - 1), "1 MiB");
}

TEST(HumanSeconds, TakesTheUnitThatReadsWell) {
  EXPECT_EQ(human_seconds(0.812), "812 ms");
  EXPECT_EQ(human_seconds(0.0042), "4.2 ms");
  EXPECT_EQ(human_seconds(0.9999), "1.0 s");
  EXPECT_EQ(human_seconds(4.2), "4.2 s");
  EXPECT_EQ(human_seconds(1500), "25 min");
  EXPECT_EQ(human_seconds(11160), "3.1 h");
}

TEST(WithCommas, SeparatesThousands) {
  EXPECT_EQ(with_commas(0), "0");
  EXPECT_EQ(with_commas(999), "999");
  EXPECT_EQ(with_commas(5043), "5,043");
  EXPECT_EQ(with_commas(-1234567), "-1,234,567");
  EXPECT_EQ(with_commas(-123), "-123");
  EXPECT_EQ(with_commas(std::numeric_limits<std::int64_t>::min()), "-9,223,372,036,854,775,808");
}

TEST(Nearest, FindsTheWordThatWasMeant) {
  EXPECT_EQ(nearest("hiden", {"heads", "hidden", "layers"}), "hidden");
  EXPECT_EQ(nearest("layesr", {"heads", "hidden", "layers"}), "layers");
  EXPECT_EQ(nearest("lr", {"lr", "layers"}), "lr");
}

TEST(Nearest, FindsNothingWhenNothingIsNear) {
  EXPECT_EQ(nearest("zzzzzz", {"heads", "hidden"}), "");
  EXPECT_EQ(nearest("abc", {}), "");
  EXPECT_EQ(nearest("", {"heads"}), "");
}

}  // namespace
}  // namespace ganymede
