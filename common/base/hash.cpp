#include "common/base/hash.h"

#include <fmt/format.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace ganymede {

std::string Hash128::hex() const { return fmt::format("{:016x}{:016x}", high, low); }

std::uint64_t hash64(std::span<const std::byte> bytes, std::uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

std::uint64_t hash64(std::string_view text, std::uint64_t seed) {
  return XXH3_64bits_withSeed(text.data(), text.size(), seed);
}

Hash128 hash128(std::span<const std::byte> bytes) {
  auto value = XXH3_128bits(bytes.data(), bytes.size());
  return {value.high64, value.low64};
}

Hash128 hash128(std::string_view text) { return hash128(std::as_bytes(std::span(text.data(), text.size()))); }

struct StreamingHash::State {
  XXH3_state_t xxh;
};

StreamingHash::StreamingHash() : state_(new State) { XXH3_128bits_reset(&state_->xxh); }
StreamingHash::~StreamingHash() { delete state_; }

void StreamingHash::add(std::span<const std::byte> bytes) {
  XXH3_128bits_update(&state_->xxh, bytes.data(), bytes.size());
}

Hash128 StreamingHash::value() const {
  auto value = XXH3_128bits_digest(&state_->xxh);
  return {value.high64, value.low64};
}

}  // namespace ganymede
