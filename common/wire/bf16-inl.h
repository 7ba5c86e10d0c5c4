// Included once per instruction set by Highway's foreach_target: the guard is Highway's own idiom.
#if defined(GANYMEDE_WIRE_BF16_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef GANYMEDE_WIRE_BF16_INL_H
#undef GANYMEDE_WIRE_BF16_INL_H
#else
#define GANYMEDE_WIRE_BF16_INL_H
#endif

#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace ganymede::wire::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// bf16 bits of a vector of fp32, to nearest, ties to even; a NaN keeps its upper half with the quiet bit set.
template <class D>
HWY_INLINE auto to_bf16(D, hn::Vec<D> value) {
  const hn::RebindToUnsigned<D> bits;
  const hn::Rebind<std::uint16_t, D> half;
  auto word = hn::BitCast(bits, value);
  auto odd = hn::And(hn::ShiftRight<16>(word), hn::Set(bits, 1u));
  auto rounded = hn::Add(hn::Add(word, odd), hn::Set(bits, 0x7fffu));
  auto quiet = hn::Or(word, hn::Set(bits, 0x400000u));
  auto chosen = hn::IfThenElse(hn::RebindMask(bits, hn::IsNaN(value)), quiet, rounded);
  return hn::TruncateTo(half, hn::ShiftRight<16>(chosen));
}

template <class D>
HWY_INLINE auto from_bf16(D d, const std::uint16_t* from) {
  const hn::RebindToUnsigned<D> bits;
  const hn::Rebind<std::uint16_t, D> half;
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(bits, hn::LoadU(half, from))));
}

/// Calls body(tag, i) for vectors that begin at i, then for single elements, so that 0 … count - 1 are covered.
template <class Body>
HWY_INLINE void for_lanes(std::size_t count, Body body) {
  const hn::ScalableTag<float> whole;
  const hn::CappedTag<float, 1> single;
  const std::size_t lanes = hn::Lanes(whole);
  std::size_t at = 0;
  for (; at + lanes <= count; at += lanes) body(whole, at);
  for (; at < count; at++) body(single, at);
}

}  // namespace ganymede::wire::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
