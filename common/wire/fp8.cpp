#include "common/wire/fp8.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "common/wire/fp8.cpp"
#include <hwy/foreach_target.h>  // compiles this file once for each kind of vector unit
#include <hwy/highway.h>

#include "common/wire/bf16-inl.h"

#ifndef GANYMEDE_WIRE_FP8_PARTS
#define GANYMEDE_WIRE_FP8_PARTS
namespace ganymede::wire {

constexpr float largest_code = 448;
constexpr std::uint8_t nan_code = 0x7f;
constexpr std::uint32_t infinity_bits = 0x7f800000;

/// `largest`: above 0 and finite.
inline float scale_of(float largest) {
  float scale = largest / largest_code;
  // A subnormal scale has few bits; rounded down it would lose the largest values to saturation.
  bool rounded_down = scale < std::numeric_limits<float>::min() && scale * largest_code < largest;
  return rounded_down ? std::nextafter(scale, 1.0f) : scale;
}

/// Where the scales and the codes of a row lie.
struct EncodedRow {
  EncodedRow(std::byte* row, std::int64_t elements)
      : scales(row), codes(reinterpret_cast<std::uint8_t*>(row) + fp8_blocks(elements) * 4) {}
  std::byte* scales;
  std::uint8_t* codes;
};

}  // namespace ganymede::wire
#endif

HWY_BEFORE_NAMESPACE();
namespace ganymede::wire::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Bits of the largest magnitude. As whole numbers, so a NaN is larger than an infinity, and that than all others.
HWY_INLINE std::uint32_t largest_bits(const float* values, std::size_t count) {
  const hn::ScalableTag<float> whole;
  const hn::RebindToUnsigned<decltype(whole)> bits;
  auto most = hn::Zero(bits);
  std::size_t at = 0;
  for (const std::size_t lanes = hn::Lanes(whole); at + lanes <= count; at += lanes) {
    most = hn::Max(most, hn::BitCast(bits, hn::Abs(hn::LoadU(whole, values + at))));
  }
  std::uint32_t largest = hn::GetLane(hn::MaxOfLanes(bits, most));
  for (; at < count; at++) largest = std::max(largest, std::bit_cast<std::uint32_t>(values[at]) & 0x7fffffffu);
  return largest;
}

/// Codes of fp32 values that are already divided by their scale.
template <class D>
HWY_INLINE auto codes_of(D d, hn::Vec<D> value) {
  const hn::RebindToUnsigned<D> bits;
  const hn::Rebind<std::uint8_t, D> codes;
  auto sign = hn::ShiftLeft<7>(hn::ShiftRight<31>(hn::BitCast(bits, value)));
  auto magnitude = hn::Min(hn::Abs(value), hn::Set(d, largest_code));
  auto word = hn::BitCast(bits, magnitude);
  auto odd = hn::And(hn::ShiftRight<20>(word), hn::Set(bits, 1u));
  auto rounded = hn::ShiftRight<20>(hn::Add(hn::Add(word, odd), hn::Set(bits, 0x7ffffu)));
  auto normal = hn::Sub(rounded, hn::Set(bits, (127u - 7u) << 3));
  // Below 2⁻⁶ codes are multiples of 2⁻⁹, the last place of an fp32 number beside 2¹⁴: the addition rounds.
  auto steps = hn::BitCast(bits, hn::Add(magnitude, hn::Set(d, 0x1p14f)));
  auto small = hn::Sub(steps, hn::Set(bits, std::bit_cast<std::uint32_t>(0x1p14f)));
  auto is_small = hn::RebindMask(bits, hn::Lt(magnitude, hn::Set(d, 0x1p-6f)));
  return hn::TruncateTo(codes, hn::Or(sign, hn::IfThenElse(is_small, small, normal)));
}

/// fp32 values of codes, exact.
template <class D>
HWY_INLINE hn::Vec<D> values_of(D d, const std::uint8_t* from) {
  const hn::RebindToUnsigned<D> bits;
  const hn::RebindToSigned<D> whole;
  const hn::Rebind<std::uint8_t, D> codes;
  auto code = hn::PromoteTo(bits, hn::LoadU(codes, from));
  auto sign = hn::ShiftLeft<24>(hn::And(code, hn::Set(bits, 0x80u)));
  auto magnitude = hn::And(code, hn::Set(bits, 0x7fu));
  auto normal = hn::Add(hn::ShiftLeft<20>(magnitude), hn::Set(bits, (127u - 7u) << 23));
  auto small = hn::Mul(hn::ConvertTo(d, hn::BitCast(whole, magnitude)), hn::Set(d, 0x1p-9f));
  auto value = hn::IfThenElse(hn::Lt(magnitude, hn::Set(bits, 8u)), hn::BitCast(bits, small), normal);
  auto is_nan = hn::Eq(magnitude, hn::Set(bits, std::uint32_t{nan_code}));
  value = hn::IfThenElse(is_nan, hn::Set(bits, 0x7fc00000u), value);
  return hn::BitCast(d, hn::Or(sign, value));
}

HWY_INLINE float encode_block(const float* values, std::size_t count, std::uint8_t* codes) {
  std::uint32_t largest = largest_bits(values, count);
  if (largest == 0 || largest >= infinity_bits) {
    std::memset(codes, largest == 0 ? 0 : nan_code, count);
    return largest == 0 ? 0 : std::numeric_limits<float>::quiet_NaN();
  }
  float scale = scale_of(std::bit_cast<float>(largest));
  for_lanes(count, [&](auto d, std::size_t at) HWY_ATTR {
    const hn::Rebind<std::uint8_t, decltype(d)> to;
    hn::StoreU(codes_of(d, hn::Div(hn::LoadU(d, values + at), hn::Set(d, scale))), to, codes + at);
  });
  return scale;
}

/// Returns how many blocks hold a value that is not finite.
std::int64_t encode_blocks(const float* values, std::int64_t row_elements, std::int64_t block, std::int64_t blocks,
                           std::byte* row) {
  std::int64_t last = fp8_blocks(row_elements) - 1, damaged = 0;
  for (std::int64_t i = 0; i < blocks; i++) {
    EncodedRow to(row, row_elements);
    std::int64_t count = std::min(fp8_block, row_elements - block * fp8_block);
    float scale = encode_block(values, static_cast<std::size_t>(count), to.codes + block * fp8_block);
    std::memcpy(to.scales + block * 4, &scale, 4);
    damaged += std::isnan(scale) ? 1 : 0;
    values += count;
    if (block++ < last) continue;
    std::memset(to.codes + row_elements, 0, static_cast<std::size_t>(-row_elements & 3));
    block = 0;
    row += fp8_row_bytes(row_elements);
  }
  return damaged;
}

template <class D>
HWY_INLINE void store(D d, hn::Vec<D> value, float* to) {
  hn::StoreU(value, d, to);
}
template <class D>
HWY_INLINE void store(D d, hn::Vec<D> value, std::uint16_t* to) {
  const hn::Rebind<std::uint16_t, D> half;
  hn::StoreU(to_bf16(d, value), half, to);
}

template <class T>
HWY_INLINE void decode(const std::byte* row, std::int64_t rows, std::int64_t row_elements, T* to) {
  for (std::int64_t r = 0; r < rows; r++, row += fp8_row_bytes(row_elements)) {
    const auto* codes = reinterpret_cast<const std::uint8_t*>(row) + fp8_blocks(row_elements) * 4;
    for (std::int64_t first = 0; first < row_elements; first += fp8_block) {
      std::int64_t count = std::min(fp8_block, row_elements - first);
      float scale = 0;
      std::memcpy(&scale, row + first / fp8_block * 4, 4);
      for_lanes(static_cast<std::size_t>(count), [&](auto d, std::size_t at) HWY_ATTR {
        store(d, hn::Mul(values_of(d, codes + at), hn::Set(d, scale)), to + at);
      });
      codes += count;
      to += count;
    }
  }
}

void decode_to_fp32(const std::byte* row, std::int64_t rows, std::int64_t row_elements, float* to) {
  decode(row, rows, row_elements, to);
}
void decode_to_bf16(const std::byte* row, std::int64_t rows, std::int64_t row_elements, std::uint16_t* to) {
  decode(row, rows, row_elements, to);
}

}  // namespace ganymede::wire::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ganymede::wire {
namespace {

NonFinite look_for_non_finite(const float* values, std::int64_t count) {
  NonFinite found;
  for (std::int64_t i = 0; i < count; i++) {
    if (std::isfinite(values[i])) continue;
    if (found.count++ == 0) found.first = i;
  }
  return found;
}

/// Elements of `blocks` blocks from block `first` of a row on.
std::int64_t elements_of(std::int64_t row_elements, std::int64_t first, std::int64_t blocks) {
  std::int64_t in_row = fp8_blocks(row_elements);
  auto begin = [&](std::int64_t block) {
    return block / in_row * row_elements + std::min(block % in_row * fp8_block, row_elements);
  };
  return begin(first + blocks) - begin(first);
}

}  // namespace

HWY_EXPORT(encode_blocks);
HWY_EXPORT(decode_to_fp32);
HWY_EXPORT(decode_to_bf16);

NonFinite encode_fp8(const float* values, std::int64_t row_elements, std::int64_t first_block, std::int64_t blocks,
                     std::byte* row) {
  std::int64_t damaged = HWY_DYNAMIC_DISPATCH(encode_blocks)(values, row_elements, first_block, blocks, row);
  return damaged == 0 ? NonFinite{} : look_for_non_finite(values, elements_of(row_elements, first_block, blocks));
}

void decode_fp8(const std::byte* encoded, std::int64_t rows, std::int64_t row_elements, float* values) {
  HWY_DYNAMIC_DISPATCH(decode_to_fp32)(encoded, rows, row_elements, values);
}
void decode_fp8(const std::byte* encoded, std::int64_t rows, std::int64_t row_elements, std::uint16_t* values) {
  HWY_DYNAMIC_DISPATCH(decode_to_bf16)(encoded, rows, row_elements, values);
}

}  // namespace ganymede::wire
#endif
