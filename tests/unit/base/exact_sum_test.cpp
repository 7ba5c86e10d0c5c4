#include "common/base/exact_sum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace ganymede {
namespace {

ExactSum sum_of(const std::vector<double>& terms) {
  ExactSum sum;
  for (double term : terms) sum.add(term);
  return sum;
}

/// Random bits of the mantissa, exponents over a wide span, both signs.
std::vector<double> wild_terms(int count, int widest, unsigned seed) {
  std::mt19937_64 random(seed);
  std::vector<double> terms;
  for (int i = 0; i < count; ++i) {
    int exponent = static_cast<int>(random() % (2 * widest + 1)) - widest;
    double mantissa = static_cast<double>(random() >> 11) * 0x1p-53;
    terms.push_back(std::ldexp(random() % 2 ? mantissa : -mantissa, exponent));
  }
  return terms;
}

/// The rounded sum of doubles by Shewchuk's expansions: another method, exact as well.
double reference(const std::vector<double>& terms) {
  std::vector<double> parts;
  for (double x : terms) {
    std::vector<double> next;
    for (double y : parts) {
      if (std::abs(x) < std::abs(y)) std::swap(x, y);
      double high = x + y, low = y - (high - x);
      if (low != 0) next.push_back(low);
      x = high;
    }
    next.push_back(x);
    parts = next;
  }
  double total = 0, low = 0;
  while (!parts.empty() && low == 0) {
    double x = total, y = parts.back();
    parts.pop_back();
    total = x + y;
    low = y - (total - x);
  }
  bool half = low != 0 && !parts.empty() && (low < 0) == (parts.back() < 0);
  if (half && (total + 2 * low) - total == 2 * low) total += 2 * low;
  return total;
}

void expect_bits(double got, double wanted) {
  EXPECT_EQ(std::bit_cast<std::uint64_t>(got), std::bit_cast<std::uint64_t>(wanted)) << got << " is not " << wanted;
}

TEST(ExactSum, IsTheCorrectlyRoundedSum) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    auto terms = wild_terms(1 + static_cast<int>(seed) % 50, seed % 2 ? 30 : 300, seed);
    expect_bits(sum_of(terms).value(), reference(terms));
  }
}

TEST(ExactSum, KeepsOrderAndGroupingOutOfTheResult) {
  auto terms = wild_terms(3000, 200, 7);
  double whole = sum_of(terms).value();
  std::mt19937_64 random(3);
  for (int ranks : {1, 2, 3, 7, 64}) {
    std::shuffle(terms.begin(), terms.end(), random);
    std::vector<ExactSum> parts(static_cast<std::size_t>(ranks));
    for (double term : terms) parts[random() % parts.size()].add(term);
    ExactSum merged;
    for (auto& part : parts) {
      if (random() % 2) part.normalise();
      merged.merge(part);
    }
    expect_bits(merged.value(), whole);
    merged.normalise();
    ExactSum at_once = sum_of(terms);
    at_once.normalise();
    EXPECT_EQ(merged.digit, at_once.digit);
  }
}

TEST(ExactSum, CancelsToZeroAndToWhatIsLeft) {
  expect_bits(sum_of({1e300, 1e-300, -1e300}).value(), 1e-300);
  expect_bits(sum_of({-1e300, -5, 1e300}).value(), -5);
  expect_bits(sum_of({0.1, -0.1}).value(), 0.0);
  expect_bits(ExactSum{}.value(), 0.0);
}

TEST(ExactSum, RoundsTiesToEven) {
  double one_up = std::nextafter(1.0, 2.0);
  expect_bits(sum_of({1, 0x1p-53}).value(), 1);
  expect_bits(sum_of({one_up, 0x1p-53}).value(), std::nextafter(one_up, 2.0));
  expect_bits(sum_of({1, 0x1p-53, 0x1p-1074}).value(), one_up);
}

TEST(ExactSum, HoldsTheEndsOfTheRange) {
  double most = std::numeric_limits<double>::max(), least = std::numeric_limits<double>::denorm_min();
  expect_bits(sum_of({least}).value(), least);
  expect_bits(sum_of({least, least, least}).value(), 3 * least);
  expect_bits(sum_of({most, most, -most}).value(), most);
  EXPECT_EQ(sum_of({most, most}).value(), std::numeric_limits<double>::infinity());
  EXPECT_EQ(sum_of({-most, -most}).value(), -std::numeric_limits<double>::infinity());
}

TEST(ExactSum, IsNotANumberOnceATermIsNot) {
  double infinity = std::numeric_limits<double>::infinity();
  ExactSum sum = sum_of({1, infinity, -infinity, std::nan("")});
  EXPECT_EQ(sum.non_finite, 3u);
  EXPECT_TRUE(std::isnan(sum.value()));
  ExactSum merged = sum_of({2});
  merged.merge(sum);
  EXPECT_TRUE(std::isnan(merged.value()));
}

TEST(ExactSum, SurvivesMoreMergesThanDigitsHaveRoom) {
  // Doubling by merging reaches 2^40 terms; without carries between, digits would overflow.
  ExactSum sum = sum_of({0.1});
  for (int i = 0; i < 40; ++i) sum.merge(ExactSum(sum));
  expect_bits(sum.value(), std::ldexp(0.1, 40));
}

}  // namespace
}  // namespace ganymede
