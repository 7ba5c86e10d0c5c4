#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

/// Hashes of the blocks of a file, so that damage is noticed when a part of it is first read, without reading the rest.
namespace ganymede::data {

/// Bytes of a block; the last one of a file is shorter. 8 bytes of hash for each: 1/8192 of the dataset.
constexpr std::size_t block_bytes = 64 << 10;

constexpr std::uint64_t blocks_of(std::uint64_t bytes) { return (bytes + block_bytes - 1) / block_bytes; }

/// Makes the hashes of a stream of pieces; they do not depend on how the stream was cut.
class BlockHasher {
 public:
  void add(std::span<const std::byte> bytes);
  /// The hashes of all that was added; nothing can be added afterwards.
  std::vector<std::uint64_t> finish();

 private:
  std::vector<std::byte> partial_;
  std::vector<std::uint64_t> hashes_;
};

/// Compares blocks of mapped memory with their hashes, each once, until they are forgotten. Thread-safe. Memory and
/// hashes must outlive it.
class BlockCheck {
 public:
  BlockCheck() = default;
  /// hashes.size() == blocks_of(content.size()).
  BlockCheck(std::span<const std::byte> content, std::span<const std::uint64_t> hashes);

  /// Whether all blocks that hold a byte of `part`, which lies in the content, are as written.
  bool sound(std::span<const std::byte> part) const;
  /// Blocks that were compared are compared again when they are read next.
  void forget() const;

 private:
  bool block_sound(std::uint64_t block) const;

  std::span<const std::byte> content_;
  std::span<const std::uint64_t> hashes_;
  mutable std::vector<std::atomic<std::uint64_t>> known_;  // a bit for each block that was found as written
};

}  // namespace ganymede::data
