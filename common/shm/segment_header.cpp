#include "common/shm/segment_header.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <limits>

#include "common/base/hash.h"
#include "schemas/segment_generated.h"

namespace ganymede::shm {
namespace {

static_assert(static_cast<int>(fbs::ElementType::f64) == static_cast<int>(ElementType::f64));
static_assert(static_cast<int>(fbs::ElementType::MAX) == static_cast<int>(ElementType::f64));

[[noreturn]] void damaged(const std::string& reason) { fail("This is not a segment of Ganymede: {}.", reason); }

/// Reads exactly `size` bytes at `offset`; the caller has checked that the file holds them.
void read_exactly(int fd, std::uint64_t offset, void* to, std::size_t size) {
  for (std::size_t done = 0; done < size;) {
    ssize_t got = ::pread(fd, static_cast<char*>(to) + done, size - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) damaged(fmt::format("its head cannot be read ({})", std::strerror(errno)));
    if (got == 0) damaged("it ends within its head");
    done += static_cast<std::size_t>(got);
  }
}

SegmentPrefix read_prefix(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) damaged(fmt::format("it cannot be looked at ({})", std::strerror(errno)));
  auto size = static_cast<std::uint64_t>(std::max<off_t>(status.st_size, 0));
  if (size < sizeof(SegmentPrefix)) damaged(fmt::format("it has only {} bytes", size));
  SegmentPrefix prefix;
  read_exactly(fd, 0, &prefix, sizeof(prefix));
  if (prefix.magic != segment_magic) damaged(fmt::format("its first word is {:016x}", prefix.magic));
  if (prefix.version != layout_version) {
    damaged(fmt::format("its layout version is {}, this program knows {}", prefix.version, layout_version));
  }
  if (prefix.size != size) damaged(fmt::format("it says {} bytes but has {}", prefix.size, size));
  if (prefix.size % size_granularity != 0) damaged(fmt::format("its size {} is no multiple of 2 MiB", prefix.size));
  if (prefix.table_bytes > largest_table || prefix.table_bytes > size - sizeof(SegmentPrefix) ||
      prefix.data_offset > size || prefix.data_offset < sizeof(SegmentPrefix) + prefix.table_bytes) {
    damaged(fmt::format("its table ({} bytes) or data (byte {}) lies outside of it", prefix.table_bytes,
                        prefix.data_offset));
  }
  return prefix;
}

Entry read_entry(const fbs::SegmentEntry& raw, const SegmentPrefix& prefix, const std::string& segment) {
  Entry entry;
  entry.name = raw.name()->str();
  if (raw.type() > fbs::ElementType::MAX) damaged(fmt::format("an entry has the unknown type {}", int(raw.type())));
  entry.type = static_cast<ElementType>(raw.type());
  entry.shape.assign(raw.shape()->begin(), raw.shape()->end());
  entry.offset = raw.offset();
  std::uint64_t bytes = checked_bytes(entry, segment);
  if (entry.offset % small_alignment != 0 || entry.offset < prefix.data_offset || entry.offset > prefix.size ||
      bytes > prefix.size - entry.offset) {
    damaged(fmt::format("an entry of {} bytes at byte {} lies outside of its data", bytes, entry.offset));
  }
  return entry;
}

}  // namespace

std::uint64_t checked_bytes(const Entry& entry, const std::string& segment) {
  std::uint64_t bytes = element_size(entry.type);
  for (std::int64_t extent : entry.shape) {
    if (extent < 0) fail("An entry of segment \"{}\" has the negative extent {}.", segment, extent);
    auto factor = static_cast<std::uint64_t>(extent);
    if (factor != 0 && bytes > largest_segment / factor)
      fail("An entry of segment \"{}\" is beyond 2^62 bytes.", segment);
    bytes *= factor;
  }
  return bytes;
}

std::vector<std::byte> table_bytes(const Layout& layout) {
  flatbuffers::FlatBufferBuilder builder;
  builder.ForceDefaults(true);
  std::vector<flatbuffers::Offset<fbs::SegmentEntry>> entries;
  for (const Entry& entry : layout.entries) {
    entries.push_back(fbs::CreateSegmentEntry(builder, builder.CreateString(entry.name),
                                              static_cast<fbs::ElementType>(entry.type),
                                              builder.CreateVector(entry.shape), entry.offset));
  }
  auto name = builder.CreateString(layout.name);
  fbs::FinishSegmentTableBuffer(builder, fbs::CreateSegmentTable(builder, name, builder.CreateVector(entries)));
  const auto* first = reinterpret_cast<const std::byte*>(builder.GetBufferPointer());
  if (builder.GetSize() > largest_table) fail("Segment \"{}\" has too many entries for its table.", layout.name);
  return {first, first + builder.GetSize()};
}

std::vector<std::byte> header_bytes(const Layout& layout, std::uint64_t job) {
  std::vector<std::byte> table = table_bytes(layout);
  SegmentPrefix prefix;
  prefix.layout_hash = layout.hash();
  prefix.job = job;
  prefix.size = layout.size;
  prefix.table_bytes = table.size();
  prefix.data_offset = sizeof(prefix) + table.size();
  prefix.checksum = checksum(prefix, table);
  std::vector<std::byte> bytes(sizeof(prefix) + table.size());
  std::memcpy(bytes.data(), &prefix, sizeof(prefix));
  std::memcpy(bytes.data() + sizeof(prefix), table.data(), table.size());
  return bytes;
}

std::uint64_t checksum(const SegmentPrefix& prefix, std::span<const std::byte> table) {
  auto words = std::as_bytes(std::span(&prefix, 1)).first(offsetof(SegmentPrefix, checksum));
  return hash64(table, hash64(words));
}

Header read_header(int fd) {
  SegmentPrefix prefix = read_prefix(fd);
  std::vector<std::uint64_t> aligned((prefix.table_bytes + 7) / 8);
  read_exactly(fd, sizeof(prefix), aligned.data(), prefix.table_bytes);
  if (checksum(prefix, std::as_bytes(std::span(aligned)).first(prefix.table_bytes)) != prefix.checksum)
    damaged("its head is not as it was written, by its checksum");
  const auto* table = reinterpret_cast<const std::uint8_t*>(aligned.data());
  // The bounds stop a table that refers to itself over and over; 4096 entries are far beyond any segment of ours.
  flatbuffers::Verifier verifier(table, prefix.table_bytes, 8, 4096);
  if (!fbs::VerifySegmentTableBuffer(verifier)) damaged("its table is damaged");
  const fbs::SegmentTable& raw = *fbs::GetSegmentTable(table);
  Header header{Layout{raw.name()->str(), {}, prefix.size}, prefix.job};
  for (const fbs::SegmentEntry* entry : *raw.entries()) {
    header.layout.entries.push_back(read_entry(*entry, prefix, header.layout.name));
  }
  if (header.layout.hash() != prefix.layout_hash) damaged("its table does not match its layout hash");
  return header;
}

}  // namespace ganymede::shm
