#include "services/data/progress.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace ganymede::data {
namespace {

using namespace std::chrono_literals;

TEST(Progress, TextSaysHowFarHowFastAndHowLongStill) {
  EXPECT_EQ(progress_text("packing", 1 << 20, 4 << 20, 8), "packing | 1 MiB of 4 MiB | 25% | 128 KiB/s | 24 s left");
  EXPECT_EQ(progress_text("packing", 6 << 20, 4 << 20, 8).find("-"), std::string::npos) << "a file may have grown";
  EXPECT_EQ(progress_text("training", 0, 0, 8), "training | 8.0 s");
}

TEST(Progress, LogGetsALineAfterTenSecondsThenEveryThirty) {
  testing::internal::CaptureStderr();
  auto begin = Clock::now();
  {
    Progress progress("packing", 1000);
    for (int second = 1; second <= 75; ++second)
      progress.at(static_cast<std::uint64_t>(second), begin + 1s * second + 500ms);
  }
  std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 3) << said;
  EXPECT_EQ(said.find('\r'), std::string::npos);
  EXPECT_EQ(said.rfind("packing | 10 B of 1000 B | 1% |", 0), 0u) << said;
}

}  // namespace
}  // namespace ganymede::data
