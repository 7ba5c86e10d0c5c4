#include "common/base/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <vector>

namespace ganymede {
namespace {

constexpr double no_bound = std::numeric_limits<double>::infinity();

TEST(Philox, GivesThePublishedVectors) {
  // Known-answer tests of Random123 for philox4x32-10.
  using Block = std::array<std::uint32_t, 4>;
  EXPECT_EQ(philox(0, 0, 0), (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox(~0ull, ~0ull, ~0ull), (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox(0x299f31d0a4093822, 0x0370734413198a2e, 0x85a308d3243f6a88),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Uniform, FillsTheOpenInterval) {
  std::vector<int> tenths(10);
  for (std::uint64_t i = 0; i < 100'000; ++i) {
    double value = uniform(1, 2, i);
    ASSERT_GT(value, 0);
    ASSERT_LT(value, 1);
    ++tenths[static_cast<std::size_t>(value * 10)];
  }
  for (int count : tenths) EXPECT_NEAR(count, 10'000, 500);  // 5 deviations
}

TEST(Normal, HasMeanDeviationAndTailsOfTheStandardNormal) {
  constexpr int n = 400'000;
  double sum = 0, squares = 0, fourth = 0;
  int beyond_two = 0, beyond_four = 0;
  for (int i = 0; i < n; ++i) {
    double x = normal(11, 5, static_cast<std::uint64_t>(i), no_bound);
    sum += x;
    squares += x * x;
    fourth += x * x * x * x;
    beyond_two += std::abs(x) > 2;
    beyond_four += std::abs(x) > 4;
  }
  EXPECT_NEAR(sum / n, 0, 5 / std::sqrt(n));
  EXPECT_NEAR(squares / n, 1, 5 * std::sqrt(2.0 / n));
  EXPECT_NEAR(fourth / n, 3, 5 * std::sqrt(96.0 / n));
  EXPECT_NEAR(beyond_two, 0.0455003 * n, 5 * std::sqrt(0.0455 * n));
  EXPECT_NEAR(beyond_four, 6.334e-5 * n, 5 * std::sqrt(6.334e-5 * n));
}

TEST(Normal, InvertsTheDistributionFunction) {
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    double p = uniform(3, 4, i), x = normal(3, 4, i, no_bound);
    EXPECT_NEAR(0.5 * std::erfc(-x / std::sqrt(2.0)) / p, 1, 1e-13 * (1 + x * x));
  }
}

TEST(Normal, TruncatedStaysInsideAndKeepsItsShape) {
  constexpr int n = 200'000;
  double squares = 0, largest = 0;
  for (int i = 0; i < n; ++i) {
    double x = normal(8, 1, static_cast<std::uint64_t>(i), 2);
    ASSERT_LE(std::abs(x), 2);
    squares += x * x;
    largest = std::max(largest, std::abs(x));
  }
  // Variance of a normal cut at 2 deviations: 1 - 4 φ(2) / (2 Φ(2) - 1).
  EXPECT_NEAR(squares / n, 0.7737413, 0.01);
  EXPECT_GT(largest, 1.999);
}

TEST(Permuted, IsABijectionOfEverySize) {
  for (std::uint64_t size : {1, 2, 3, 4, 5, 7, 16, 17, 100, 255, 256, 257, 1000, 4097}) {
    std::vector<bool> seen(size);
    for (std::uint64_t i = 0; i < size; ++i) {
      auto to = permuted(99, size, i);
      ASSERT_LT(to, size);
      ASSERT_FALSE(seen[to]) << "size " << size << ", twice " << to;
      seen[to] = true;
    }
  }
}

TEST(Permuted, StaysInsideHugeSizes) {
  std::set<std::uint64_t> seen;
  for (std::uint64_t size : {(1ull << 40) + 1, ~0ull}) {
    for (std::uint64_t i = 0; i < 2000; ++i) {
      auto to = permuted(5, size, i);
      ASSERT_LT(to, size);
      seen.insert(to);
    }
  }
  EXPECT_EQ(seen.size(), 4000u);
}

TEST(Permuted, DependsOnTheKeyAndLeavesNoOrder) {
  constexpr std::uint64_t size = 10'000;
  int same = 0, ascending = 0;
  for (std::uint64_t i = 0; i + 1 < size; ++i) {
    same += permuted(1, size, i) == permuted(2, size, i);
    ascending += permuted(1, size, i) < permuted(1, size, i + 1);
  }
  EXPECT_LT(same, 20);
  EXPECT_NEAR(ascending, 5000, 250);
}

}  // namespace
}  // namespace ganymede
