#include "common/wire/bf16.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "common/wire/bf16.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>  // compiles this file once for each kind of vector unit
#include <hwy/highway.h>

#include "common/wire/bf16-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ganymede::wire::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D>
HWY_INLINE auto as(D, hn::Vec<D> value, float*) {
  return value;
}
template <class D>
HWY_INLINE auto as(D d, hn::Vec<D> value, std::uint16_t*) {
  return to_bf16(d, value);
}

void encode(const float* from, std::uint16_t* to, std::size_t count) {
  for_lanes(count, [&](auto d, std::size_t at) HWY_ATTR {
    const hn::Rebind<std::uint16_t, decltype(d)> half;
    hn::StoreU(to_bf16(d, hn::LoadU(d, from + at)), half, to + at);
  });
}

void decode(const std::uint16_t* from, float* to, std::size_t count) {
  for_lanes(count, [&](auto d, std::size_t at) HWY_ATTR { hn::StoreU(from_bf16(d, from + at), d, to + at); });
}

void add(const std::uint16_t* from, float* sum, std::size_t count) {
  for_lanes(count, [&](auto d, std::size_t at)
                       HWY_ATTR { hn::StoreU(hn::Add(hn::LoadU(d, sum + at), from_bf16(d, from + at)), d, sum + at); });
}

template <class T>
HWY_INLINE void one_by_one(const float* from, T* to, std::size_t count) {
  const hn::CappedTag<float, 1> single;
  const hn::Rebind<T, decltype(single)> wire;
  for (std::size_t i = 0; i < count; i++) hn::StoreU(as(single, hn::LoadU(single, from + i), to), wire, to + i);
}

template <class T>
HWY_INLINE void stream(const float* from, T* to, std::size_t count) {
  const hn::ScalableTag<float> whole;
  const hn::Rebind<T, decltype(whole)> wire;
  const std::size_t lanes = hn::Lanes(whole), line = lanes * sizeof(T);
  const std::size_t lead = (line - reinterpret_cast<std::uintptr_t>(to) % line) % line / sizeof(T);
  std::size_t at = lead < count ? lead : count;
  one_by_one(from, to, at);
  for (; at + lanes <= count; at += lanes) hn::Stream(as(whole, hn::LoadU(whole, from + at), to), wire, to + at);
  one_by_one(from + at, to + at, count - at);
}

void stream_as_fp32(const float* from, float* to, std::size_t count) { stream(from, to, count); }
void stream_as_bf16(const float* from, std::uint16_t* to, std::size_t count) { stream(from, to, count); }

}  // namespace ganymede::wire::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ganymede::wire {

HWY_EXPORT(encode);
HWY_EXPORT(decode);
HWY_EXPORT(add);
HWY_EXPORT(stream_as_fp32);
HWY_EXPORT(stream_as_bf16);

void encode_bf16(std::span<const float> values, std::uint16_t* to) {
  HWY_DYNAMIC_DISPATCH(encode)(values.data(), to, values.size());
}
void decode_bf16(std::span<const std::uint16_t> from, float* values) {
  HWY_DYNAMIC_DISPATCH(decode)(from.data(), values, from.size());
}
void add_bf16(std::span<const std::uint16_t> from, float* sum) {
  HWY_DYNAMIC_DISPATCH(add)(from.data(), sum, from.size());
}
void stream_fp32(std::span<const float> values, float* to) {
  HWY_DYNAMIC_DISPATCH(stream_as_fp32)(values.data(), to, values.size());
}
void stream_bf16(std::span<const float> values, std::uint16_t* to) {
  HWY_DYNAMIC_DISPATCH(stream_as_bf16)(values.data(), to, values.size());
}
void finish_stream() { hwy::FlushStream(); }

}  // namespace ganymede::wire
#endif
