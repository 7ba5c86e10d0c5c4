#pragma once

#include <cstddef>
#include <cstdint>

namespace ganymede::vector_units {

/// Shorter than, as long as, and longer than the vectors of all units (up to 64 elements), and nothing they divide.
constexpr std::size_t lengths[] = {1, 3, 4, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 127, 129, 1003};

/// Keyed values of both signs over twelve orders of magnitude; one in 13 is zero, one in 17 is subnormal. By arithmetic
/// that is exact, so that every machine has the same.
float magnitude(std::uint64_t index, std::uint64_t stream);
/// All fp32 bit patterns, keyed: NaNs and infinities among them.
float any_bits(std::uint64_t index, std::uint64_t stream);

}  // namespace ganymede::vector_units
