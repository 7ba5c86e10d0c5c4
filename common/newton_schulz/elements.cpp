#include "common/newton_schulz/elements.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "common/newton_schulz/elements.cpp"
#include <hwy/foreach_target.h>  // compiles this file once for each kind of vector unit
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace ganymede::newton_schulz::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// body(d, at) for whole vectors as long as one of fp64, then for the rest one by one.
template <class Body>
HWY_INLINE void for_elements(std::int64_t elements, const Body& body) {
  const hn::Rebind<float, hn::ScalableTag<double>> whole;
  const hn::CappedTag<float, 1> single;
  const auto count = static_cast<std::size_t>(elements), lanes = hn::Lanes(whole);
  std::size_t at = 0;
  for (; at + lanes <= count; at += lanes) body(whole, at);
  for (; at < count; ++at) body(single, at);
}

template <class D, class V>
HWY_INLINE V scaled(D d, V value, double scale) {
  const hn::Rebind<double, D> wide;
  return hn::DemoteTo(d, hn::Mul(hn::PromoteTo(wide, value), hn::Set(wide, scale)));
}

/// Nearest, ties to even; a NaN stays one.
template <class D, class V>
HWY_INLINE auto to_bf16(D, V value) {
  const hn::RebindToUnsigned<D> bits;
  const hn::Rebind<std::uint16_t, D> half;
  const auto word = hn::BitCast(bits, value);
  const auto odd = hn::And(hn::ShiftRight<16>(word), hn::Set(bits, 1u));
  const auto rounded = hn::Add(hn::Add(word, odd), hn::Set(bits, 0x7fffu));
  const auto quiet = hn::Or(word, hn::Set(bits, 0x400000u));
  return hn::TruncateTo(half,
                        hn::ShiftRight<16>(hn::IfThenElse(hn::RebindMask(bits, hn::IsNaN(value)), quiet, rounded)));
}

void ScaleToFp32(const float* in, std::int64_t elements, double scale, float* out) {
  for_elements(elements, [&](auto d, std::size_t at)
                             HWY_ATTR { hn::StoreU(scaled(d, hn::LoadU(d, in + at), scale), d, out + at); });
}

void ScaleToBf16(const float* in, std::int64_t elements, double scale, std::uint16_t* out) {
  for_elements(elements, [&](auto d, std::size_t at) HWY_ATTR {
    const hn::Rebind<std::uint16_t, decltype(d)> half;
    hn::StoreU(to_bf16(d, scaled(d, hn::LoadU(d, in + at), scale)), half, out + at);
  });
}

/// The bits of the largest magnitude, so that it shows an element which is not finite.
template <class Load>
HWY_INLINE std::uint32_t copy_elements(std::int64_t elements, float* out, const Load& load) {
  std::uint32_t largest = 0;
  const hn::Rebind<float, hn::ScalableTag<double>> whole;
  const hn::RebindToUnsigned<decltype(whole)> bits;
  auto most = hn::Zero(bits);
  for_elements(elements, [&](auto d, std::size_t at) HWY_ATTR {
    const auto value = load(d, at);
    hn::StoreU(value, d, out + at);
    const hn::RebindToUnsigned<decltype(d)> words;
    const auto magnitude = hn::BitCast(words, hn::Abs(value));
    if constexpr (std::is_same_v<decltype(d), std::remove_const_t<decltype(whole)>>) {
      most = hn::Max(most, magnitude);
    } else {
      largest = std::max(largest, hn::GetLane(magnitude));
    }
  });
  return std::max(largest, hn::GetLane(hn::MaxOfLanes(bits, most)));
}

std::uint32_t CopyFp32(const float* in, std::int64_t elements, float* out) {
  return copy_elements(elements, out, [&](auto d, std::size_t at) HWY_ATTR { return hn::LoadU(d, in + at); });
}

std::uint32_t CopyBf16(const std::uint16_t* in, std::int64_t elements, float* out) {
  return copy_elements(elements, out, [&](auto d, std::size_t at) HWY_ATTR {
    const hn::RebindToUnsigned<decltype(d)> words;
    const hn::Rebind<std::uint16_t, decltype(d)> half;
    return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(words, hn::LoadU(half, in + at))));
  });
}

}  // namespace ganymede::newton_schulz::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ganymede::newton_schulz {

HWY_EXPORT(ScaleToFp32);
HWY_EXPORT(ScaleToBf16);
HWY_EXPORT(CopyFp32);
HWY_EXPORT(CopyBf16);

namespace {

constexpr std::int64_t lanes = 8;  // partial sums, so that the additions of a norm do not wait for one another
constexpr std::uint32_t infinity = 0x7f800000;

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
    HWY_DYNAMIC_DISPATCH(ScaleToFp32)(in, elements, scale, static_cast<float*>(out));
  } else {
    HWY_DYNAMIC_DISPATCH(ScaleToBf16)(in, elements, scale, static_cast<std::uint16_t*>(out));
  }
}

bool store(const void* in, std::int64_t elements, Element element, float* out) {
  const std::uint32_t largest =
      element == Element::fp32 ? HWY_DYNAMIC_DISPATCH(CopyFp32)(static_cast<const float*>(in), elements, out)
                               : HWY_DYNAMIC_DISPATCH(CopyBf16)(static_cast<const std::uint16_t*>(in), elements, out);
  return largest < infinity;
}

void scale_and_shift(const float* in, std::int64_t size, float scale, float diagonal, float* out) {
  for (std::int64_t row = 0; row < size; ++row) {
    for (std::int64_t i = row * size; i < (row + 1) * size; ++i) out[i] = scale * in[i];
    out[row * size + row] += diagonal;
  }
}

}  // namespace ganymede::newton_schulz
#endif
