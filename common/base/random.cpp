#include "common/base/random.h"

#include <bit>
#include <cmath>
#include <numbers>

#include "common/base/error.h"

namespace ganymede {
namespace {

constexpr double cell = 0x1p-32;

/// Distribution function of the standard normal, accurate in the lower tail.
double below(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

/// Acklam's approximation of the inverse distribution function for 0 < p ≤ 0.5; relative error 1.15e-9.
double acklam(double p) {
  constexpr double edge = 0.02425;
  if (p < edge) {
    double q = std::sqrt(-2 * std::log(p));
    double top = ((((-7.784894002430293e-03 * q - 3.223964580411365e-01) * q - 2.400758277161838e+00) * q -
                   2.549732539343734e+00) *
                      q +
                  4.374664141464968e+00) *
                     q +
                 2.938163982698783e+00;
    double bottom = (((7.784695709041462e-03 * q + 3.224671290700398e-01) * q + 2.445134137142996e+00) * q +
                     3.754408661907416e+00) *
                        q +
                    1;
    return top / bottom;
  }
  double q = p - 0.5, r = q * q;
  double top = (((((-3.969683028665376e+01 * r + 2.209460984245205e+02) * r - 2.759285104469687e+02) * r +
                  1.383577518672690e+02) *
                     r -
                 3.066479806614716e+01) *
                    r +
                2.506628277459239e+00) *
               q;
  double bottom = ((((-5.447609879822406e+01 * r + 1.615858368580409e+02) * r - 1.556989798598866e+02) * r +
                    6.680131188771972e+01) *
                       r -
                   1.328068155288572e+01) *
                      r +
                  1;
  return top / bottom;
}

/// Inverse of `below` for 0 < p ≤ 0.5: the approximation and one Halley step.
double inverse_lower(double p) {
  double x = acklam(p);
  double error = below(x) - p;
  double step = error * std::sqrt(2 * std::numbers::pi) * std::exp(x * x / 2);
  return x - step / (1 + x * step / 2);
}

}  // namespace

std::array<std::uint32_t, 4> philox(std::uint64_t key, std::uint64_t counter_high, std::uint64_t counter_low) {
  auto low = [](std::uint64_t v) { return static_cast<std::uint32_t>(v); };
  auto high = [](std::uint64_t v) { return static_cast<std::uint32_t>(v >> 32); };
  std::array<std::uint32_t, 4> c = {low(counter_low), high(counter_low), low(counter_high), high(counter_high)};
  std::uint32_t k0 = low(key), k1 = high(key);
  for (int round = 0; round < 10; ++round) {
    std::uint64_t a = std::uint64_t{0xD2511F53} * c[0];
    std::uint64_t b = std::uint64_t{0xCD9E8D57} * c[2];
    c = {high(b) ^ c[1] ^ k0, low(b), high(a) ^ c[3] ^ k1, low(a)};
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return c;
}

double uniform(std::uint64_t key, std::uint64_t stream, std::uint64_t index) {
  return (philox(key, stream, index)[0] + 0.5) * cell;
}

double normal(std::uint64_t key, std::uint64_t stream, std::uint64_t index, double bound) {
  double p = uniform(key, stream, index);
  bool upper = p > 0.5;
  if (upper) p = 1 - p;  // exact: p is a multiple of 2^-33
  double cut = below(-bound);
  double x = inverse_lower(cut + p * (1 - 2 * cut));
  if (x < -bound) x = -bound;
  return upper ? -x : x;
}

std::uint64_t permuted(std::uint64_t key, std::uint64_t size, std::uint64_t position) {
  GANYMEDE_CHECK(position < size, "position {} outside a permutation of {}", position, size);
  int half_bits = (std::bit_width(size - 1) + 1) / 2;
  if (half_bits == 0) return 0;
  constexpr int rounds = 6;
  std::uint64_t mask = (std::uint64_t{1} << half_bits) - 1;
  // The network permutes 0 … 4^half_bits - 1, less than four times `size`: walk until it lands inside.
  do {
    std::uint64_t left = position >> half_bits, right = position & mask;
    for (std::uint64_t round = 0; round < rounds; ++round) {
      auto mixed = philox(key, ~round, right)[0];
      std::uint64_t next = left ^ (mixed & mask);
      left = right;
      right = next;
    }
    position = left << half_bits | right;
  } while (position >= size);
  return position;
}

}  // namespace ganymede
