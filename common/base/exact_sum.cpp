#include "common/base/exact_sum.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace ganymede {
namespace {

constexpr int scale = 1088;  // digit 0 counts units of 2^-scale
constexpr std::uint32_t most_additions = 1u << 30;
constexpr std::int64_t digit_mask = 0xffffffff;

/// Magnitude of a sum as 32-bit words, lowest first; the last digit takes two words.
using Magnitude = std::array<std::uint32_t, ExactSum::digits + 1>;

bool bit_at(const Magnitude& words, int index) { return index >= 0 && (words[index / 32] >> (index % 32) & 1); }

bool any_below(const Magnitude& words, int index) {
  for (int i = 0; i < index / 32; ++i) {
    if (words[i]) return true;
  }
  return index > 0 && (words[index / 32] & ((std::uint32_t{1} << (index % 32)) - 1)) != 0;
}

double rounded(const Magnitude& words) {
  int top = static_cast<int>(words.size()) - 1;
  while (top >= 0 && words[top] == 0) --top;
  if (top < 0) return 0;
  int highest = top * 32 + std::bit_width(words[top]) - 1;
  int lowest = std::max(highest - 52, scale - 1074);  // a double keeps 53 bits and nothing below 2^-1074
  std::uint64_t mantissa = 0;
  for (int i = highest; i >= lowest; --i) mantissa = mantissa << 1 | bit_at(words, i);
  bool half = bit_at(words, lowest - 1);
  if (half && (any_below(words, lowest - 1) || (mantissa & 1))) ++mantissa;
  return std::ldexp(static_cast<double>(mantissa), lowest - scale);
}

}  // namespace

void ExactSum::add(double term) {
  auto bits = std::bit_cast<std::uint64_t>(term);
  int exponent = static_cast<int>(bits >> 52 & 0x7ff);
  if (exponent == 0x7ff) {
    ++non_finite;
    return;
  }
  if (additions == most_additions) normalise();
  ++additions;
  std::uint64_t mantissa = bits & ((std::uint64_t{1} << 52) - 1);
  if (exponent == 0) {
    exponent = 1;
  } else {
    mantissa |= std::uint64_t{1} << 52;
  }
  int position = exponent - 1075 + scale;
  int shift = position % 32;
  auto sign = static_cast<std::int64_t>(bits) >> 63;  // 0 or -1: x ^ sign - sign negates
  auto low = static_cast<std::int64_t>((mantissa << shift) & digit_mask);
  auto middle = static_cast<std::int64_t>((mantissa >> (32 - shift)) & digit_mask);
  auto high = static_cast<std::int64_t>(mantissa >> 32 >> (32 - shift));  // in two steps: one by 64 is not defined
  std::int64_t* at = digit.data() + position / 32;
  at[0] += (low ^ sign) - sign;
  at[1] += (middle ^ sign) - sign;
  at[2] += (high ^ sign) - sign;
}

void ExactSum::merge(const ExactSum& other) {
  ExactSum term = other;
  if (std::uint64_t{additions} + term.additions + 1 > most_additions) {
    normalise();
    term.normalise();
  }
  for (int i = 0; i < digits; ++i) digit[i] += term.digit[i];
  additions += term.additions + 1;
  non_finite += term.non_finite;
}

void ExactSum::normalise() {
  std::int64_t carry = 0;
  for (int i = 0; i < digits - 1; ++i) {
    std::int64_t value = digit[i] + carry;
    digit[i] = value & digit_mask;
    carry = value >> 32;  // arithmetic: rounds down, so digits stay positive
  }
  digit[digits - 1] += carry;
  additions = 0;
}

double ExactSum::value() const {
  if (non_finite > 0) return std::numeric_limits<double>::quiet_NaN();
  ExactSum sum = *this;
  sum.normalise();
  bool negative = sum.digit[digits - 1] < 0;
  if (negative) {
    for (auto& d : sum.digit) d = -d;
    sum.normalise();
  }
  Magnitude words{};
  for (int i = 0; i < digits; ++i) words[i] = static_cast<std::uint32_t>(sum.digit[i]);
  words[digits] = static_cast<std::uint32_t>(sum.digit[digits - 1] >> 32);
  double result = rounded(words);
  return negative ? -result : result;
}

}  // namespace ganymede
