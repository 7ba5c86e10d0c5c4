// Part of a plugin's kernel that Highway compiles once for each kind of vector unit: include it after
// <hwy/foreach_target.h>, inside no namespace. The guard is switched for every target.
#if defined(GANYMEDE_ELEMENTWISE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef GANYMEDE_ELEMENTWISE_INL_H
#undef GANYMEDE_ELEMENTWISE_INL_H
#else
#define GANYMEDE_ELEMENTWISE_INL_H
#endif

#include <hwy/highway.h>

#include <cstddef>

HWY_BEFORE_NAMESPACE();
namespace ganymede::plugins::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// update(d, at) for all elements of a chunk: whole vectors, then the rest one by one, so that bits depend neither on
/// the vector's width nor on how a run of elements is cut.
template <class Update>
HWY_INLINE void for_elements(std::size_t count, const Update& update) {
  const hn::ScalableTag<float> whole;
  const std::size_t lanes = hn::Lanes(whole);
  std::size_t at = 0;
  for (; at + lanes <= count; at += lanes) update(whole, at);
  const hn::CappedTag<float, 1> single;
  for (; at < count; at++) update(single, at);
}

}  // namespace ganymede::plugins::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
