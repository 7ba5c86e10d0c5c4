#include "common/newton_schulz/elements.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>

namespace ganymede::newton_schulz {

namespace {

constexpr std::int64_t lanes = 8;  // partial sums, so that the additions of a norm do not wait for one another

std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float from_bf16(std::uint16_t value) { return std::bit_cast<float>(static_cast<std::uint32_t>(value) << 16); }

}  // namespace

double frobenius_norm(const float* in, std::int64_t elements) {
  std::array<double, lanes> sums{};
  const std::int64_t whole = elements / lanes * lanes;
  for (std::int64_t i = 0; i < whole; i += lanes) {
    for (std::int64_t lane = 0; lane < lanes; ++lane) {
      const double value = in[i + lane];
      sums[static_cast<std::size_t>(lane)] += value * value;
    }
  }
  for (std::int64_t i = whole; i < elements; ++i) sums[0] += static_cast<double>(in[i]) * in[i];
  double sum = 0;
  for (const double part : sums) sum += part;
  return std::sqrt(sum);
}

void load_scaled(const float* in, std::int64_t elements, double scale, Element element, void* out) {
  if (element == Element::fp32) {
    auto* values = static_cast<float*>(out);
    for (std::int64_t i = 0; i < elements; ++i) values[i] = static_cast<float>(in[i] * scale);
  } else {
    auto* values = static_cast<std::uint16_t*>(out);
    for (std::int64_t i = 0; i < elements; ++i) values[i] = to_bf16(static_cast<float>(in[i] * scale));
  }
}

bool store(const void* in, std::int64_t elements, Element element, float* out) {
  if (element == Element::fp32) {
    std::memcpy(out, in, static_cast<std::size_t>(elements) * sizeof(float));
  } else {
    const auto* values = static_cast<const std::uint16_t*>(in);
    for (std::int64_t i = 0; i < elements; ++i) out[i] = from_bf16(values[i]);
  }
  // value − value is 0, or NaN if the value is not finite.
  float difference = 0;
  for (std::int64_t i = 0; i < elements; ++i) difference += out[i] - out[i];
  return difference == 0;
}

void scale_and_shift(const float* in, std::int64_t size, float scale, float diagonal, float* out) {
  for (std::int64_t row = 0; row < size; ++row) {
    for (std::int64_t i = row * size; i < (row + 1) * size; ++i) out[i] = scale * in[i];
    out[row * size + row] += diagonal;
  }
}

}  // namespace ganymede::newton_schulz
