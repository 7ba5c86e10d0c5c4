#include "common/collectives/shm/copies.h"

#include <cstdint>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "common/collectives/shm/copies.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>  // compiles this file once for each kind of vector unit
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace ganymede::collectives::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// `to` on a vector's boundary; whole groups of four vectors. Returns the bytes copied.
std::size_t stream_vectors(std::uint8_t* to, const std::uint8_t* from, std::size_t bytes) {
  const hn::ScalableTag<std::uint8_t> d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + 4 * lanes <= bytes; i += 4 * lanes) {
    auto first = hn::LoadU(d, from + i), second = hn::LoadU(d, from + i + lanes);
    auto third = hn::LoadU(d, from + i + 2 * lanes), fourth = hn::LoadU(d, from + i + 3 * lanes);
    hn::Stream(first, d, to + i);
    hn::Stream(second, d, to + i + lanes);
    hn::Stream(third, d, to + i + 2 * lanes);
    hn::Stream(fourth, d, to + i + 3 * lanes);
  }
  hwy::FlushStream();
  return i;
}

}  // namespace ganymede::collectives::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ganymede::collectives {

HWY_EXPORT(stream_vectors);

void copy_past_caches(std::byte* to, const std::byte* from, std::size_t bytes) {
  constexpr std::size_t widest_vector = 256;
  std::size_t head = (widest_vector - reinterpret_cast<std::uintptr_t>(to) % widest_vector) % widest_vector;
  if (head > bytes) head = bytes;
  std::memcpy(to, from, head);
  std::size_t done =
      head + HWY_DYNAMIC_DISPATCH(stream_vectors)(reinterpret_cast<std::uint8_t*>(to + head),
                                                  reinterpret_cast<const std::uint8_t*>(from + head), bytes - head);
  std::memcpy(to + done, from + done, bytes - done);
}

}  // namespace ganymede::collectives
#endif  // HWY_ONCE
