#include "tests/numerics/vector_units/inputs.h"

#include <array>
#include <bit>
#include <limits>

namespace ganymede::vector_units {
namespace {

/// Four words by SplitMix64 (Steele et al., "Fast splittable pseudorandom number generators", 2014).
std::array<std::uint32_t, 4> words_of(std::uint64_t index, std::uint64_t stream) {
  std::array<std::uint32_t, 4> words{};
  std::uint64_t state = index << 20 ^ stream << 8;
  for (std::size_t i = 0; i < words.size(); i += 2) {
    std::uint64_t z = (state += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    z ^= z >> 31;
    words[i] = static_cast<std::uint32_t>(z);
    words[i + 1] = static_cast<std::uint32_t>(z >> 32);
  }
  return words;
}

}  // namespace

float magnitude(std::uint64_t index, std::uint64_t stream) {
  auto words = words_of(index, stream);
  std::uint32_t sign = words[0] & 0x80000000u, mantissa = words[1] & 0x007fffffu;
  if (words[2] % 13 == 0) return std::bit_cast<float>(sign);
  if (words[2] % 17 == 0) return std::bit_cast<float>(sign | mantissa);
  std::uint32_t exponent = 127 - 37 + words[3] % 40;  // 2^-37 … 2^2
  return std::bit_cast<float>(sign | exponent << 23 | mantissa);
}

float any_bits(std::uint64_t index, std::uint64_t stream) {
  auto words = words_of(index, stream);
  if (words[1] % 19 == 0) return std::numeric_limits<float>::infinity();
  if (words[1] % 23 == 0) return std::bit_cast<float>(0x7f800001u | words[2] >> 9);  // a NaN, quiet or not
  return std::bit_cast<float>(words[0]);
}

}  // namespace ganymede::vector_units
