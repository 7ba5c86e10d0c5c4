// Included once per instruction set by Highway's foreach_target: the guard is Highway's own idiom.
#if defined(GANYMEDE_WORKER_MODEL_SIMD_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef GANYMEDE_WORKER_MODEL_SIMD_INL_H
#undef GANYMEDE_WORKER_MODEL_SIMD_INL_H
#else
#define GANYMEDE_WORKER_MODEL_SIMD_INL_H
#endif

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include <cstdint>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace ganymede::worker::model::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using Tag = hn::ScalableTag<float>;
using Vector = hn::Vec<Tag>;
using Bits = hn::RebindToUnsigned<Tag>;
using Bf16 = std::uint16_t;
using Bf16Tag = hn::Rebind<Bf16, Tag>;

constexpr std::size_t max_lanes = HWY_MAX_BYTES / sizeof(float);
HWY_INLINE std::size_t lanes() { return hn::Lanes(Tag()); }

/// Lanes of `x` from `left` on are zero: the end of a row is computed by the same instructions as its middle.
HWY_INLINE Vector load(const float* x, std::size_t left) {
  if (HWY_LIKELY(left >= lanes())) return hn::LoadU(Tag(), x);
  HWY_ALIGN float part[max_lanes] = {};
  std::memcpy(part, x, left * sizeof(float));
  return hn::Load(Tag(), part);
}

HWY_INLINE Vector widen(hn::Vec<Bf16Tag> x) { return hn::BitCast(Tag(), hn::ShiftLeft<16>(hn::PromoteTo(Bits(), x))); }

HWY_INLINE Vector load(const Bf16* x, std::size_t left) {
  if (HWY_LIKELY(left >= lanes())) return widen(hn::LoadU(Bf16Tag(), x));
  HWY_ALIGN Bf16 part[max_lanes] = {};
  std::memcpy(part, x, left * sizeof(Bf16));
  return widen(hn::Load(Bf16Tag(), part));
}

/// Nearest, ties to even; NaN stays NaN.
HWY_INLINE hn::Vec<Bits> bf16_bits(Vector x) {
  const Bits bits;
  const auto u = hn::BitCast(bits, x);
  const auto odd = hn::And(hn::ShiftRight<16>(u), hn::Set(bits, 1));
  const auto rounded = hn::ShiftRight<16>(hn::Add(u, hn::Add(odd, hn::Set(bits, 0x7fff))));
  const auto nan = hn::Set(bits, 0x7fc0);
  return hn::IfThenElse(hn::RebindMask(bits, hn::IsNaN(x)), nan, rounded);
}

HWY_INLINE Vector round_like(const float*, Vector x) { return x; }
HWY_INLINE Vector round_like(const Bf16*, Vector x) { return hn::BitCast(Tag(), hn::ShiftLeft<16>(bf16_bits(x))); }

HWY_INLINE void store(Vector v, float* x, std::size_t left) {
  if (HWY_LIKELY(left >= lanes())) return hn::StoreU(v, Tag(), x);
  HWY_ALIGN float part[max_lanes];
  hn::Store(v, Tag(), part);
  std::memcpy(x, part, left * sizeof(float));
}

HWY_INLINE void store(Vector v, Bf16* x, std::size_t left) {
  const hn::RebindToSigned<Tag> integers;
  const auto narrow = hn::DemoteTo(Bf16Tag(), hn::BitCast(integers, bf16_bits(v)));
  if (HWY_LIKELY(left >= lanes())) return hn::StoreU(narrow, Bf16Tag(), x);
  HWY_ALIGN Bf16 part[max_lanes];
  hn::Store(narrow, Bf16Tag(), part);
  std::memcpy(x, part, left * sizeof(Bf16));
}

HWY_INLINE float sum(Vector v) { return hn::GetLane(hn::SumOfLanes(Tag(), v)); }
HWY_INLINE Vector constant(float x) { return hn::Set(Tag(), x); }

/// NaN passes through (a diverged step must be seen as such); 0 where e^x would not be a normal number.
HWY_INLINE Vector exponential(Vector x) {
  const auto power = hn::IfThenElseZero(hn::Ge(x, constant(-87.0f)), hn::Exp(Tag(), x));
  return hn::IfThenElse(hn::IsNaN(x), x, power);
}

HWY_INLINE Vector logistic(Vector x) {
  const auto power = hn::Exp(Tag(), hn::Min(hn::Neg(x), constant(87.0f)));
  const auto result = hn::Div(constant(1.0f), hn::Add(constant(1.0f), power));
  return hn::IfThenElse(hn::IsNaN(x), x, result);
}

}  // namespace ganymede::worker::model::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
