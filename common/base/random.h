#pragma once

#include <array>
#include <cstdint>

namespace ganymede {

/// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011): 128 random bits that are
/// a pure function of (key, counter). Everything random in the project is keyed, never drawn from a stream.
std::array<std::uint32_t, 4> philox(std::uint64_t key, std::uint64_t counter_high, std::uint64_t counter_low);

/// Uniform in (0, 1): the middle of one of 2^32 equal cells, so never 0 and never 1.
double uniform(std::uint64_t key, std::uint64_t stream, std::uint64_t index);

/// Standard normal by inversion of the distribution function (Acklam's rational approximation refined by one
/// Halley step), so one value costs one draw and bounded work; a truncated normal is the same inversion of a
/// narrowed interval. `bound` in standard deviations; infinity for none.
double normal(std::uint64_t key, std::uint64_t stream, std::uint64_t index, double bound);

/// A permutation of 0 … size-1 as a function of (key, position) without storing it: a Feistel network over
/// Philox with cycle walking. 0 ≤ position < size.
std::uint64_t permuted(std::uint64_t key, std::uint64_t size, std::uint64_t position);

}  // namespace ganymede
