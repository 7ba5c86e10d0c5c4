#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace ganymede {

/// 128-bit XXH3 hash: for identity and damage, not against an adversary.
struct Hash128 {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  bool operator==(const Hash128&) const = default;
  /// 32 lower-case hexadecimal digits.
  std::string hex() const;
};

std::uint64_t hash64(std::span<const std::byte> bytes, std::uint64_t seed = 0);
std::uint64_t hash64(std::string_view text, std::uint64_t seed = 0);
Hash128 hash128(std::span<const std::byte> bytes);
Hash128 hash128(std::string_view text);

/// Hash of a stream of pieces; the result depends on the bytes alone, not on how they were cut.
class StreamingHash {
 public:
  StreamingHash();
  ~StreamingHash();
  StreamingHash(const StreamingHash&) = delete;
  StreamingHash& operator=(const StreamingHash&) = delete;
  void add(std::span<const std::byte> bytes);
  Hash128 value() const;

 private:
  struct State;
  State* state_;
};

}  // namespace ganymede
