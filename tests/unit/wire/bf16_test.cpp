#include "common/wire/bf16.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "common/base/random.h"

namespace ganymede::wire {
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

/// With all kinds of stores.
std::vector<std::uint16_t> to_bf16(const std::vector<float>& values, std::size_t shift) {
  std::vector<std::uint16_t> wire(values.size() + shift + 32, 0x1234);
  stream_bf16(values, wire.data() + shift);
  finish_stream();
  EXPECT_EQ(wire[shift + values.size()], 0x1234) << "nothing behind the end";
  for (std::size_t i = 0; i < shift; i++) EXPECT_EQ(wire[i], 0x1234) << "nothing before the start";
  std::vector<std::uint16_t> beside(values.size() + shift + 32, 0x1234);
  std::vector<float> copy(values.size() + 1, 3.0f);
  copy_and_stream_bf16(values, copy.data(), beside.data() + shift);
  finish_stream();
  EXPECT_EQ(beside, wire);
  auto same_bits = [](float one, float other) {
    return std::bit_cast<std::uint32_t>(one) == std::bit_cast<std::uint32_t>(other);
  };
  EXPECT_TRUE(std::equal(values.begin(), values.end(), copy.begin(), same_bits)) << "of a NaN too";
  EXPECT_EQ(copy.back(), 3.0f) << "nothing behind the end";
  std::vector<std::uint16_t> plain(values.size() + shift + 32, 0x1234);
  encode_bf16(values, plain.data() + shift);
  EXPECT_EQ(plain, wire);
  return {wire.begin() + static_cast<std::ptrdiff_t>(shift),
          wire.begin() + static_cast<std::ptrdiff_t>(shift + values.size())};
}

TEST(Bf16, RoundsToTheNearestBf16TiesToEven) {
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

TEST(Bf16, KeepsInfinitiesAndNaNs) {
  float infinity = std::numeric_limits<float>::infinity();
  auto wire = to_bf16({infinity, -infinity, std::bit_cast<float>(0x7f800001u), std::bit_cast<float>(0xffffffffu)}, 0);
  EXPECT_EQ(wire[0], 0x7f80);
  EXPECT_EQ(wire[1], 0xff80);
  EXPECT_EQ(wire[2], 0x7fc0);
  EXPECT_EQ(wire[3], 0xffff);
}

TEST(Bf16, StartAndLengthMayBeAny) {
  for (std::size_t shift : {0u, 1u, 3u, 16u, 31u}) {
    for (std::size_t count : {0u, 1u, 5u, 16u, 33u, 200u}) {
      std::vector<float> values(count);
      for (std::size_t i = 0; i < count; i++) values[i] = static_cast<float>(i) + 0.25f;
      auto half = to_bf16(values, shift);
      std::vector<float> single(count + shift + 1, -1);
      stream_fp32(values, single.data() + shift);
      finish_stream();
      for (std::size_t i = 0; i < count; i++) {
        EXPECT_EQ(half[i], nearest_bf16(values[i]));
        EXPECT_EQ(single[shift + i], values[i]);
      }
      EXPECT_EQ(single[shift + count], -1);
    }
  }
}

TEST(Bf16, DecodesEveryPatternExactly) {
  std::vector<std::uint16_t> patterns(1 << 16);
  for (std::size_t i = 0; i < patterns.size(); i++) patterns[i] = static_cast<std::uint16_t>(i);
  std::vector<float> values(patterns.size());
  decode_bf16(patterns, values.data());
  for (std::uint32_t i = 0; i < patterns.size(); i++) ASSERT_EQ(std::bit_cast<std::uint32_t>(values[i]), i << 16);
}

TEST(Bf16, AddsContributionsInTheOrderOfTheCalls) {
  for (std::size_t count : {1u, 15u, 64u, 77u}) {
    std::vector<float> sum(count, 0), expected(count, 0);
    for (std::uint64_t rank = 0; rank < 5; rank++) {
      std::vector<std::uint16_t> part(count);
      for (std::size_t i = 0; i < count; i++) {
        auto value = static_cast<float>(std::ldexp(uniform(rank, 3, i) - 0.5, static_cast<int>(rank * 7 % 20)));
        part[i] = nearest_bf16(value);
        expected[i] += std::bit_cast<float>(std::uint32_t{part[i]} << 16);
      }
      add_bf16(part, sum.data());
    }
    EXPECT_EQ(sum, expected);
  }
}

}  // namespace
}  // namespace ganymede::wire
