#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "common/base/random.h"
#include "services/optimizer/selection_bias.h"
#include "services/optimizer/team.h"
#include "services/optimizer/working_copy.h"

namespace ganymede::optimizer {
namespace {

/// The nearer of the two bf16 neighbours, by distance in fp64; of two equally near the even one.
std::uint16_t nearest_bf16(float value) {
  auto below = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);  // towards zero
  auto above = static_cast<std::uint16_t>(below + 1);
  auto widen = [](std::uint16_t half) { return static_cast<double>(std::bit_cast<float>(std::uint32_t{half} << 16)); };
  double down = std::abs(value - widen(below));
  double up = std::abs(std::isinf(widen(above)) ? std::ldexp(1.0, 128) - std::abs(value) : widen(above) - value);
  if (down != up) return down < up ? below : above;
  return below % 2 == 0 ? below : above;
}

std::vector<std::uint16_t> to_bf16(const std::vector<float>& values, std::size_t shift) {
  std::vector<std::uint16_t> wire(values.size() + shift + 32, 0x1234);
  publish(values, std::as_writable_bytes(std::span(wire)), static_cast<std::int64_t>(shift), config::Dtype::bf16);
  finish_publishing();
  EXPECT_EQ(wire[shift + values.size()], 0x1234) << "nothing behind the end";
  for (std::size_t i = 0; i < shift; i++) EXPECT_EQ(wire[i], 0x1234) << "nothing before the start";
  return {wire.begin() + static_cast<std::ptrdiff_t>(shift),
          wire.begin() + static_cast<std::ptrdiff_t>(shift + values.size())};
}

TEST(WorkingCopy, RoundsToTheNearestBf16TiesToEven) {
  std::vector<float> values;
  for (std::uint32_t i = 0; i < 4000; i++) {
    std::uint32_t bits = philox(1, 2, i)[0];
    float value = std::bit_cast<float>(bits);
    if (std::isfinite(value)) values.push_back(value);
    values.push_back(std::bit_cast<float>((bits & 0xffff0000) % 0x7f800000 | 0x8000));  // a tie
  }
  for (float value : {0.0f, -0.0f, 1.0f, std::numeric_limits<float>::denorm_min(), std::numeric_limits<float>::max(),
                      -std::numeric_limits<float>::max()}) {
    values.push_back(value);
  }
  auto wire = to_bf16(values, 0);
  for (std::size_t i = 0; i < values.size(); i++) ASSERT_EQ(wire[i], nearest_bf16(values[i])) << values[i];
}

TEST(WorkingCopy, KeepsInfinitiesAndNaNs) {
  float infinity = std::numeric_limits<float>::infinity();
  auto wire = to_bf16({infinity, -infinity, std::bit_cast<float>(0x7f800001u), std::bit_cast<float>(0xffffffffu)}, 0);
  EXPECT_EQ(wire[0], 0x7f80);
  EXPECT_EQ(wire[1], 0xff80);
  EXPECT_EQ(wire[2], 0x7fc0);
  EXPECT_EQ(wire[3], 0xffff);
}

TEST(WorkingCopy, StartAndLengthMayBeAny) {
  for (std::size_t shift : {0u, 1u, 3u, 16u, 31u}) {
    for (std::size_t count : {0u, 1u, 5u, 16u, 33u, 200u}) {
      std::vector<float> values(count);
      for (std::size_t i = 0; i < count; i++) values[i] = static_cast<float>(i) + 0.25f;
      auto half = to_bf16(values, shift);
      std::vector<float> single(count + shift + 1, -1);
      publish(values, std::as_writable_bytes(std::span(single)), static_cast<std::int64_t>(shift), config::Dtype::fp32);
      for (std::size_t i = 0; i < count; i++) {
        EXPECT_EQ(half[i], nearest_bf16(values[i]));
        EXPECT_EQ(single[shift + i], values[i]);
      }
      EXPECT_EQ(single[shift + count], -1);
    }
  }
}

TEST(SelectionBias, MovesTowardsTheMeanAndStopsAtIt) {
  std::vector<std::int64_t> counts = {10, 0, 5, 5};
  std::vector<float> bias = {0.5f, 0, 0.25f, -0.25f}, updated(4);
  update_selection_bias(counts, 0, 0.125, bias, updated);
  EXPECT_THAT(updated, testing::ElementsAre(0.375f, 0.125f, 0.25f, -0.25f));
}

TEST(SelectionBias, ComparesWithAMeanThatIsNoInteger) {
  std::vector<std::int64_t> counts = {3, 3, 4};  // mean 3⅓
  std::vector<float> bias(3, 0), updated(3);
  update_selection_bias(counts, 0, 1, bias, updated);
  EXPECT_THAT(updated, testing::ElementsAre(1, 1, -1));
}

TEST(SelectionBias, PartOfTheExpertsUsesTheMeanOfAll) {
  std::vector<std::int64_t> counts = {100, 0, 1, 99};
  std::vector<float> bias(2, 0), updated(2);
  update_selection_bias(counts, 2, 1, bias, updated);
  EXPECT_THAT(updated, testing::ElementsAre(1, -1));
}

TEST(Team, EveryMemberWorksOnceARound) {
  Team team(4);
  std::array<int, 4> rounds{};
  for (int i = 0; i < 2000; i++) team.run([&](int index) { rounds[index]++; });
  EXPECT_THAT(rounds, testing::Each(2000));
}

TEST(Team, WakesAfterSleep) {
  Team team(3);
  std::array<int, 3> rounds{};
  for (int i = 0; i < 3; i++) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    team.run([&](int index) { rounds[index]++; });
  }
  EXPECT_THAT(rounds, testing::Each(3));
}

}  // namespace
}  // namespace ganymede::optimizer
