#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace ganymede {

/// Exact sum of doubles: a fixed-point number wide enough for every finite double (Kulisch accumulator).
/// The result does not depend on the order of the additions or on how the terms were spread over ranks, so the
/// gradient norm of a sharded model has the bits of the unsharded one. Plain data: it travels in the vote and is
/// merged by adding digit by digit. Up to 2^30 additions between two calls of `normalise`.
struct ExactSum {
  static constexpr int digits = 68;  // 32 bits each, lowest first; digit 0 starts at 2^-1088
  std::array<std::int64_t, digits> digit{};
  std::uint32_t additions = 0;
  std::uint32_t non_finite = 0;  // how many infinities or NaNs were added; they leave the digits as they were

  void add(double term);
  /// Adds all terms of another sum.
  void merge(const ExactSum& other);
  /// Carries, so that each digit is in [0, 2^32) but for the sign in the last.
  void normalise();
  /// The sum rounded to double (nearest, ties to even); NaN if a term was not finite.
  double value() const;
};

}  // namespace ganymede
