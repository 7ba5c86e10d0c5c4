#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/base/error.h"

/// Shared-memory segments: memfds held by the keeper, described by a table of their own, opened by any process.
/// On the wire and in memory: 64-byte prefix (magic, layout version, layout hash, job id, size, sizes of the head,
/// its checksum), a FlatBuffers table (`schemas/segment.fbs`) that names every tensor, then the data. Offsets, never
/// pointers.
namespace ganymede::shm {

enum class ElementType : std::uint8_t { u8, i32, i64, u64, f32, bf16, f64 };
std::size_t element_size(ElementType type);

struct Entry {
  std::string name;
  ElementType type = ElementType::u8;
  std::vector<std::int64_t> shape;
  std::uint64_t offset = 0;  // bytes from the start of the segment
  std::uint64_t bytes() const;
};

/// What a segment holds. Built alike by every process from the configuration; its hash must match the segment's.
struct Layout {
  std::string name;  // "master", "state.0", …
  std::vector<Entry> entries;
  std::uint64_t size = 0;  // of the segment, header included, a multiple of 2 MiB
  std::uint64_t hash() const;
  const Entry& entry(const std::string& name) const;  // ends the process if there is none
  bool has(const std::string& name) const;
};

/// Assigns offsets (each entry on a page boundary of 64 KiB if `bytes ≥ 64 KiB`, else on 64 bytes) and the size.
/// Throws Error when two entries have one name or a size is negative or beyond 2^62 bytes.
Layout lay_out(const std::string& name, std::vector<Entry> entries);

/// A mapped segment. Movable; unmapped when destroyed; the memory lives on in the keeper. Thread-compatible.
class Segment {
 public:
  /// Writes prefix and table into a new, zeroed memfd of `layout.size` bytes and maps it.
  static Segment create(int fd, const Layout& layout, std::uint64_t job);
  /// Maps an existing one; throws Error when its head is damaged, when job, size or layout hash are not as expected,
  /// and says which entry differs.
  static Segment attach(int fd, const Layout& layout, std::uint64_t job);
  /// Reads the table of any segment (for `ctl segments`). Everything in it is checked: sizes, offsets, types, names
  /// and the hash. Throws Error when it is not a segment or is damaged. Maps nothing, so a file that shrinks
  /// meanwhile does no harm.
  static Layout describe(int fd);

  Segment(Segment&&) noexcept;
  Segment& operator=(Segment&&) noexcept;
  ~Segment();

  const Layout& layout() const { return layout_; }
  std::byte* base() const { return base_; }

  /// The elements of one entry; T's size must be that of its element type (or T be std::byte).
  template <class T>
  std::span<T> span(const std::string& name) const {
    const Entry& entry = layout_.entry(name);
    GANYMEDE_CHECK(entry.bytes() % sizeof(T) == 0 && alignof(T) <= 64,
                   "entry \"{}\" of segment \"{}\" is no array of that", name, layout_.name);
    return {reinterpret_cast<T*>(base_ + entry.offset), entry.bytes() / sizeof(T)};
  }

 private:
  Segment() = default;
  Layout layout_;
  std::byte* base_ = nullptr;
  std::size_t mapped_ = 0;
};

}  // namespace ganymede::shm
