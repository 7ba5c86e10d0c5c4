#include "common/collectives/sums.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "common/collectives/sums.cpp"
#include <hwy/foreach_target.h>  // compiles this file once for each kind of vector unit
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace ganymede::collectives::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

struct Fp32 {
  static constexpr std::size_t bytes = 4;
  template <class D>
  static HWY_INLINE hn::Vec<D> load(D d, const std::byte* from) {
    return hn::LoadU(d, reinterpret_cast<const float*>(from));
  }
};

struct Bf16 {
  static constexpr std::size_t bytes = 2;
  template <class D>
  static HWY_INLINE hn::Vec<D> load(D d, const std::byte* from) {
    const hn::RebindToUnsigned<D> bits;
    const hn::Rebind<std::uint16_t, D> half;
    auto upper = hn::LoadU(half, reinterpret_cast<const std::uint16_t*>(from));
    return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(bits, upper)));
  }
};

/// Elements [at, at + lanes of d).
template <class Term, class D>
HWY_INLINE hn::Vec<D> sum_at(D d, const std::byte* const* terms, std::size_t number, std::size_t at) {
  hn::Vec<D> total = Term::load(d, terms[0] + at * Term::bytes);
  for (std::size_t term = 1; term < number; ++term) {
    total = hn::Add(total, Term::load(d, terms[term] + at * Term::bytes));
  }
  return total;
}

template <class Term>
void sum_terms(const std::byte* const* terms, std::size_t number, std::size_t count, float* sum) {
  const hn::ScalableTag<float> whole;
  const hn::CappedTag<float, 1> single;
  const std::size_t lanes = hn::Lanes(whole);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(sum_at<Term>(whole, terms, number, i), whole, sum + i);
  for (; i < count; ++i) hn::StoreU(sum_at<Term>(single, terms, number, i), single, sum + i);
}

void sum_fp32(const std::byte* const* terms, std::size_t number, std::size_t count, float* sum) {
  sum_terms<Fp32>(terms, number, count, sum);
}
void sum_bf16(const std::byte* const* terms, std::size_t number, std::size_t count, float* sum) {
  sum_terms<Bf16>(terms, number, count, sum);
}

}  // namespace ganymede::collectives::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ganymede::collectives {

HWY_EXPORT(sum_fp32);
HWY_EXPORT(sum_bf16);

void sum_in_order(Element element, std::span<const std::byte* const> terms, std::size_t count, float* sum) {
  if (element == Element::fp32) {
    HWY_DYNAMIC_DISPATCH(sum_fp32)(terms.data(), terms.size(), count, sum);
  } else {
    HWY_DYNAMIC_DISPATCH(sum_bf16)(terms.data(), terms.size(), count, sum);
  }
}

}  // namespace ganymede::collectives
#endif  // HWY_ONCE
