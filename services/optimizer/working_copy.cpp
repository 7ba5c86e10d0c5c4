#include "services/optimizer/working_copy.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "services/optimizer/working_copy.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>  // compiles this file once for each kind of vector unit
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace ganymede::optimizer::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D>
HWY_INLINE auto wire_format(D d, const float* from, float*) {
  return hn::LoadU(d, from);
}

/// To nearest, ties to even, on the bit patterns; a NaN keeps its upper half with the quiet bit set.
template <class D>
HWY_INLINE auto wire_format(D d, const float* from, std::uint16_t*) {
  const hn::RebindToUnsigned<D> bits;
  const hn::Rebind<std::uint16_t, D> half;
  auto value = hn::LoadU(d, from);
  auto word = hn::BitCast(bits, value);
  auto odd = hn::And(hn::ShiftRight<16>(word), hn::Set(bits, 1u));
  auto rounded = hn::Add(hn::Add(word, odd), hn::Set(bits, 0x7fffu));
  auto quiet = hn::Or(word, hn::Set(bits, 0x400000u));
  auto chosen = hn::IfThenElse(hn::RebindMask(bits, hn::IsNaN(value)), quiet, rounded);
  return hn::TruncateTo(half, hn::ShiftRight<16>(chosen));
}

template <class D, class T>
HWY_INLINE void one_by_one(D d, const float* from, T* to, std::size_t count) {
  const hn::Rebind<T, D> wire;
  for (std::size_t i = 0; i < count; i++) hn::StoreU(wire_format(d, from + i, to), wire, to + i);
}

template <class T>
HWY_INLINE void publish_values(const float* from, T* to, std::size_t count) {
  const hn::ScalableTag<float> whole;
  const hn::Rebind<T, decltype(whole)> wire;
  const hn::CappedTag<float, 1> single;
  const std::size_t lanes = hn::Lanes(whole), line = lanes * sizeof(T);
  const std::size_t lead = (line - reinterpret_cast<std::uintptr_t>(to) % line) % line / sizeof(T);
  std::size_t at = lead < count ? lead : count;
  one_by_one(single, from, to, at);
  for (; at + lanes <= count; at += lanes) hn::Stream(wire_format(whole, from + at, to), wire, to + at);
  one_by_one(single, from + at, to + at, count - at);
}

void publish_fp32(const float* from, float* to, std::size_t count) { publish_values(from, to, count); }
void publish_bf16(const float* from, std::uint16_t* to, std::size_t count) { publish_values(from, to, count); }

}  // namespace ganymede::optimizer::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ganymede::optimizer {

HWY_EXPORT(publish_fp32);
HWY_EXPORT(publish_bf16);

void publish(std::span<const float> values, std::span<std::byte> working, std::int64_t first, config::Dtype dtype) {
  if (dtype == config::Dtype::fp32) {
    HWY_DYNAMIC_DISPATCH(publish_fp32)
    (values.data(), reinterpret_cast<float*>(working.data()) + first, values.size());
  } else {
    HWY_DYNAMIC_DISPATCH(publish_bf16)
    (values.data(), reinterpret_cast<std::uint16_t*>(working.data()) + first, values.size());
  }
}

void finish_publishing() { hwy::FlushStream(); }

}  // namespace ganymede::optimizer
#endif
