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

/// Elements before the first boundary of a vector from `to` on, `count` at most.
template <class T>
HWY_INLINE std::size_t elements_before_a_vector(const T* to, std::size_t count) {
  const std::size_t vector = hn::Lanes(hn::ScalableTag<T>()) * sizeof(T);
  const std::size_t lead = (vector - reinterpret_cast<std::uintptr_t>(to) % vector) % vector / sizeof(T);
  return lead < count ? lead : count;
}

/// Stores past the caches are of whole vectors. `to` on a vector's boundary; what fills no vector is stored as usual.
template <class T>
HWY_INLINE void stream(const T* from, T* to, std::size_t count) {
  const hn::ScalableTag<T> whole;
  const std::size_t lanes = hn::Lanes(whole);
  std::size_t at = 0;
  for (; at + lanes <= count; at += lanes) hn::Stream(hn::LoadU(whole, from + at), whole, to + at);
  for (; at < count; at++) to[at] = from[at];
}

void stream_as_fp32(const float* from, float* to, std::size_t count) {
  const std::size_t lead = elements_before_a_vector(to, count);
  for (std::size_t i = 0; i < lead; i++) to[i] = from[i];
  stream(from + lead, to + lead, count - lead);
}

/// Two vectors of fp32 give a vector of bf16. One lane is no vector to stream. Values that were read go through `each`.
template <class Each>
HWY_INLINE void stream_halves(const float* from, std::uint16_t* to, std::size_t count, Each each) {
  const auto encode_some = [&](std::size_t begin, std::size_t end) HWY_ATTR {
    for_lanes(end - begin, [&](auto d, std::size_t i) HWY_ATTR {
      const hn::Rebind<std::uint16_t, decltype(d)> half;
      hn::StoreU(to_bf16(d, each(d, hn::LoadU(d, from + begin + i), begin + i)), half, to + begin + i);
    });
  };
  std::size_t at = elements_before_a_vector(to, count);
  encode_some(0, at);
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<float> single;
  const hn::ScalableTag<std::uint16_t> whole;
  const std::size_t half = hn::Lanes(single);
  for (; at + 2 * half <= count; at += 2 * half) {
    auto low = to_bf16(single, each(single, hn::LoadU(single, from + at), at));
    auto high = to_bf16(single, each(single, hn::LoadU(single, from + at + half), at + half));
    hn::Stream(hn::Combine(whole, high, low), whole, to + at);
  }
#endif
  encode_some(at, count);
}

void stream_as_bf16(const float* from, std::uint16_t* to, std::size_t count) {
  stream_halves(from, to, count, [](auto, auto value, std::size_t) HWY_ATTR { return value; });
}

void copy_and_stream_as_bf16(const float* from, float* copy, std::uint16_t* to, std::size_t count) {
  stream_halves(from, to, count, [copy](auto d, auto value, std::size_t at) HWY_ATTR {
    hn::StoreU(value, d, copy + at);
    return value;
  });
}

}  // namespace ganymede::wire::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ganymede::wire {

HWY_EXPORT(encode);
HWY_EXPORT(decode);
HWY_EXPORT(add);
HWY_EXPORT(stream_as_fp32);
HWY_EXPORT(stream_as_bf16);
HWY_EXPORT(copy_and_stream_as_bf16);

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
void copy_and_stream_bf16(std::span<const float> values, float* copy, std::uint16_t* to) {
  HWY_DYNAMIC_DISPATCH(copy_and_stream_as_bf16)(values.data(), copy, to, values.size());
}
void finish_stream() { hwy::FlushStream(); }

}  // namespace ganymede::wire
#endif
