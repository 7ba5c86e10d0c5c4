#include "common/wire/fp8.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "common/base/random.h"
#include "tests/support/only_vector_unit.h"

namespace ganymede::wire {
namespace {

using Bytes = std::vector<std::byte>;

/// Value of a code by its definition: sign, four bits of exponent (bias 7), three of mantissa.
double value_of(std::uint8_t code) {
  int exponent = code >> 3 & 15, mantissa = code & 7;
  double magnitude = exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10);
  return code & 0x80 ? -magnitude : magnitude;
}

/// The nearest code by distance in fp64, of two equally near the even one; beyond 448 the largest.
std::uint8_t nearest_code(float value) {
  std::uint8_t best = 0;
  for (std::uint8_t code = 0; code < 0x7f; code++) {
    double distance = std::abs(std::abs(value) - value_of(code)), before = std::abs(std::abs(value) - value_of(best));
    if (distance < before || (distance == before && code % 2 == 0)) best = code;
  }
  return static_cast<std::uint8_t>(best | (std::signbit(value) ? 0x80 : 0));
}

/// The format of fp8.h, value by value.
Bytes expected_rows(const std::vector<float>& values, std::size_t row_elements) {
  Bytes bytes;
  for (std::size_t row = 0; row < values.size(); row += row_elements) {
    std::vector<float> scales;
    std::vector<std::uint8_t> codes;
    for (std::size_t first = 0; first < row_elements; first += 128) {
      std::size_t end = std::min(first + 128, row_elements);
      float largest = 0;
      for (std::size_t i = first; i < end; i++) largest = std::max(largest, std::abs(values[row + i]));
      scales.push_back(largest / 448);
      for (std::size_t i = first; i < end; i++) codes.push_back(nearest_code(values[row + i] / scales.back()));
    }
    auto append = [&](const void* from, std::size_t size) {
      bytes.resize(bytes.size() + size);
      std::memcpy(bytes.data() + bytes.size() - size, from, size);
    };
    append(scales.data(), scales.size() * 4);
    append(codes.data(), codes.size());
    bytes.resize((bytes.size() + 3) / 4 * 4);
  }
  return bytes;
}

std::vector<float> draw(std::size_t count, std::uint64_t seed, int exponents = 12) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; i++) {
    int exponent = -static_cast<int>(uniform(seed, 1, i) * exponents);
    values[i] = static_cast<float>(std::ldexp(uniform(seed, 2, i) - 0.5, exponent));
  }
  return values;
}

Bytes encoded(const std::vector<float>& values, std::int64_t row_elements) {
  auto rows = static_cast<std::int64_t>(values.size()) / row_elements;
  Bytes bytes(static_cast<std::size_t>(rows * fp8_row_bytes(row_elements)) + 8, std::byte{0xab});
  NonFinite found = encode_fp8(values.data(), row_elements, 0, rows * fp8_blocks(row_elements), bytes.data());
  EXPECT_EQ(found.count, 0);
  for (std::size_t i = bytes.size() - 8; i < bytes.size(); i++) EXPECT_EQ(bytes[i], std::byte{0xab});
  bytes.resize(bytes.size() - 8);
  return bytes;
}

std::vector<float> decoded(const Bytes& bytes, std::int64_t row_elements) {
  auto rows = static_cast<std::int64_t>(bytes.size()) / fp8_row_bytes(row_elements);
  std::vector<float> values(static_cast<std::size_t>(rows * row_elements) + 1, 7.5f);
  decode_fp8(bytes.data(), rows, row_elements, values.data());
  EXPECT_EQ(values.back(), 7.5f) << "nothing behind the end";
  values.pop_back();
  return values;
}

TEST(Fp8, RowOfEveryLengthHasTheBytesOfTheDefinition) {
  for (std::int64_t length = 1; length <= 3 * 128 + 1; length++) {
    std::vector<float> values = draw(static_cast<std::size_t>(3 * length), static_cast<std::uint64_t>(length));
    ASSERT_EQ(encoded(values, length), expected_rows(values, static_cast<std::size_t>(length))) << length;
  }
}

TEST(Fp8, ExactlyHalfwayGoesToTheEvenCode) {
  std::vector<float> values(128, 0);
  values[0] = 448;  // scale 1
  for (std::uint8_t code = 0; code < 126; code++) {
    values[code + 1u] = static_cast<float>((value_of(code) + value_of(static_cast<std::uint8_t>(code + 1))) / 2);
  }
  EXPECT_EQ(encoded(values, 128), expected_rows(values, 128));
}

TEST(Fp8, EveryCodeComesBackAsItself) {
  std::vector<float> values(256 + 128, 0);
  for (unsigned code = 0; code < 256; code++) {
    bool nan = (code & 0x7f) == 0x7f;
    values[code / 64 * 96 + code % 64] = nan ? 0 : static_cast<float>(value_of(static_cast<std::uint8_t>(code)));
  }
  for (std::size_t block = 0; block < 3; block++) values[block * 128 + 127] = 448;  // scale 1
  EXPECT_EQ(decoded(encoded(values, 384), 384), values);
}

TEST(Fp8, BlockOfZerosHasScaleZeroAndTakesNothingFromItsNeighbours) {
  std::vector<float> values = draw(300, 5);
  std::fill(values.begin() + 128, values.begin() + 256, 0.0f);
  values[130] = -0.0f;
  Bytes bytes = encoded(values, 300);
  float scale = 1;
  std::memcpy(&scale, bytes.data() + 4, 4);
  EXPECT_EQ(scale, 0);
  std::vector<float> back = decoded(bytes, 300);
  for (std::size_t i = 128; i < 256; i++) ASSERT_EQ(back[i], 0);
  EXPECT_NE(back[127], 0);
  EXPECT_NE(back[256], 0);
  EXPECT_EQ(encoded(std::vector<float>(16, 0.0f), 16), Bytes(20));
}

TEST(Fp8, LargestMagnitudeIsAlwaysTheLargestCode) {
  for (std::uint64_t i = 0; i < 20000; i++) {
    float largest = std::bit_cast<float>(philox(1, 2, i)[0] & 0x7fffffffu);
    if (!std::isfinite(largest) || largest < 448 * std::numeric_limits<float>::min()) continue;
    Bytes bytes = encoded({largest, -largest, largest / 3}, 3);
    ASSERT_EQ(bytes[4], std::byte{0x7e}) << largest;
    ASSERT_EQ(bytes[5], std::byte{0xfe}) << largest;
    ASSERT_NEAR(decoded(bytes, 3)[0] / largest, 1, 2e-7);
  }
}

/// Largest error of a block, as part of its largest magnitude.
double worst_error(const std::vector<float>& values, const std::vector<float>& back) {
  double largest = 0, worst = 0;
  for (std::size_t i = 0; i < values.size(); i++) {
    largest = std::max<double>(largest, std::abs(values[i]));
    worst = std::max(worst, std::abs(static_cast<double>(values[i]) - back[i]));
  }
  return largest == 0 ? worst : worst / largest;
}

TEST(Fp8, ErrorIsWithinItsBoundWhateverTheMagnitudes) {
  double worst = 0;
  for (int exponent = -116; exponent <= 126; exponent++) {
    std::vector<float> values = draw(128, static_cast<std::uint64_t>(200 + exponent), 3);
    for (float& value : values) value = std::ldexp(value, exponent);
    worst = std::max(worst, worst_error(values, decoded(encoded(values, 128), 128)));
  }
  EXPECT_LE(worst, 0.0358);
  EXPECT_GE(worst, 0.03) << "the test has come near the bound";
}

TEST(Fp8, ScaleThatIsSubnormalIsRoundedUpSoThatNothingSaturates) {
  constexpr float smallest = std::numeric_limits<float>::denorm_min();
  for (int step = 1; step < 3000; step++) {
    std::vector<float> values = draw(64, static_cast<std::uint64_t>(step), 3);
    values[0] = 1;
    for (float& value : values) value = std::ldexp(value * static_cast<float>(step), -149);
    std::vector<float> back = decoded(encoded(values, 64), 64);
    double bound = std::max<double>(0.067 * step * smallest, smallest);
    for (std::size_t i = 0; i < values.size(); i++) {
      ASSERT_LE(std::abs(static_cast<double>(values[i]) - back[i]), bound) << step << " " << i;
    }
  }
}

TEST(Fp8, NonFiniteValuesAreCountedAndTheirBlockDecodesToNaN) {
  constexpr float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for (float bad : {infinity, -infinity, nan, -nan}) {
    for (std::size_t place : {0u, 127u, 128u, 299u, 300u, 599u}) {
      std::vector<float> values = draw(600, 8);
      values[place] = bad;
      if (place < 598) values[place + 1] = bad;
      Bytes bytes(static_cast<std::size_t>(2 * fp8_row_bytes(300)));
      NonFinite found = encode_fp8(values.data(), 300, 0, 6, bytes.data());
      EXPECT_EQ(found.count, place < 598 ? 2 : 1);
      EXPECT_EQ(found.first, static_cast<std::int64_t>(place));
      std::vector<float> back = decoded(bytes, 300);
      auto block = [](std::size_t i) { return i / 300 * 3 + i % 300 / 128; };
      for (std::size_t i = 0; i < 600; i++) {
        bool damaged = block(i) == block(place) || (place < 598 && block(i) == block(place + 1));
        ASSERT_EQ(std::isnan(back[i]), damaged) << bad << " at " << place << ": " << i;
      }
    }
  }
}

TEST(Fp8, BlocksInAnyPortionsGiveTheSameBytes) {
  for (std::int64_t length : {1, 100, 128, 130, 300, 512}) {
    constexpr std::int64_t rows = 5;
    std::vector<float> values = draw(static_cast<std::size_t>(rows * length), 11);
    Bytes whole = encoded(values, length), parts(whole.size(), std::byte{0xcd});
    std::int64_t in_row = fp8_blocks(length);
    for (std::int64_t block = 0, count = 1; block < rows * in_row; block += count, count = count % 4 + 1) {
      count = std::min(count, rows * in_row - block);
      std::int64_t row = block / in_row, inside = block % in_row;
      encode_fp8(values.data() + row * length + inside * 128, length, inside, count,
                 parts.data() + row * fp8_row_bytes(length));
    }
    EXPECT_EQ(parts, whole) << length;
  }
}

TEST(Fp8, EveryVectorUnitGivesTheSameBits) {
  std::vector<float> values = draw(7 * 333, 21, 40);
  Bytes bytes = encoded(values, 333);
  std::vector<float> back = decoded(bytes, 333);
  std::vector<std::uint16_t> half(values.size()), half_again(values.size());
  decode_fp8(bytes.data(), 7, 333, half.data());
  for (std::int64_t targets = hwy::SupportedTargets(); targets != 0; targets &= targets - 1) {
    OnlyVectorUnit only(targets & -targets);
    ASSERT_EQ(encoded(values, 333), bytes) << hwy::TargetName(targets & -targets);
    ASSERT_EQ(decoded(bytes, 333), back);
    decode_fp8(bytes.data(), 7, 333, half_again.data());
    ASSERT_EQ(half, half_again);
  }
}

}  // namespace
}  // namespace ganymede::wire
