#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/shm/segment.h"

/// The head of a segment as bytes: writing it, and reading it from memory that nobody has vouched for.
///
///     segment := prefix table padding data
///     prefix  := magic:u64 version:u64 layout_hash:u64 job:u64 size:u64 table_bytes:u64 data_offset:u64
///                checksum:u64                                                             64 bytes
///     table   := FlatBuffers SegmentTable (schemas/segment.fbs)
///     checksum: hash64 of the table, begun with that of the words before the checksum
namespace ganymede::shm {

constexpr std::uint64_t segment_magic = 0x31544745534e4147;  // "GANSEGT1"
constexpr std::uint64_t layout_version = 2;
constexpr std::uint64_t small_alignment = 64;
constexpr std::uint64_t large_entry = 64u << 10;  // from here on an entry starts on a page of any machine we know
constexpr std::uint64_t size_granularity = 2u << 20;
constexpr std::uint64_t largest_table = 1u << 20;
constexpr std::uint64_t largest_segment = std::uint64_t{1} << 62;

struct SegmentPrefix {
  std::uint64_t magic = segment_magic;
  std::uint64_t version = layout_version;
  std::uint64_t layout_hash = 0;
  std::uint64_t job = 0;
  std::uint64_t size = 0;
  std::uint64_t table_bytes = 0;
  std::uint64_t data_offset = 0;
  std::uint64_t checksum = 0;
};
static_assert(sizeof(SegmentPrefix) == 64);

constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// Bytes of an entry. Throws Error when an extent is negative or the product is beyond `largest_segment`.
std::uint64_t checked_bytes(const Entry& entry, const std::string& segment);

/// The FlatBuffers table; its length does not depend on the offsets in it.
std::vector<std::byte> table_bytes(const Layout& layout);
/// Prefix and table.
std::vector<std::byte> header_bytes(const Layout& layout, std::uint64_t job);

struct Header {
  Layout layout;
  std::uint64_t job = 0;
};
/// Of a prefix, whatever its own says, and the table behind it.
std::uint64_t checksum(const SegmentPrefix& prefix, std::span<const std::byte> table);

/// Copies the head out of the descriptor and checks all of it. Throws Error with the reason.
Header read_header(int fd);

}  // namespace ganymede::shm
