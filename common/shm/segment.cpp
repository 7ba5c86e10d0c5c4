#include "common/shm/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "common/base/hash.h"
#include "common/shm/segment_header.h"

namespace ganymede::shm {
namespace {

std::string describe_entry(const Entry& entry) {
  constexpr const char* type_names[] = {"u8", "i32", "i64", "u64", "f32", "bf16", "f64"};
  return fmt::format("{} [{}] at byte {}", type_names[static_cast<int>(entry.type)], fmt::join(entry.shape, ", "),
                     entry.offset);
}

/// One sentence about the first difference between two layouts of the same name. Offsets come last: one entry more
/// moves all of them.
std::string first_difference(const Layout& found, const Layout& expected) {
  std::size_t common = std::min(found.entries.size(), expected.entries.size());
  for (std::size_t i = 0; i < common; ++i) {
    const Entry& have = found.entries[i];
    const Entry& want = expected.entries[i];
    if (have.name != want.name)
      return fmt::format("it has an entry \"{}\" where \"{}\" is expected", have.name, want.name);
    if (have.type != want.type || have.shape != want.shape) {
      return fmt::format("its entry \"{}\" is {} but {} is expected", have.name, describe_entry(have),
                         describe_entry(want));
    }
  }
  if (found.entries.size() > common)
    return fmt::format("it has one entry too many, \"{}\"", found.entries[common].name);
  if (expected.entries.size() > common)
    return fmt::format("its entry \"{}\" is missing", expected.entries[common].name);
  for (std::size_t i = 0; i < common; ++i) {
    if (found.entries[i].offset == expected.entries[i].offset) continue;
    return fmt::format("its entry \"{}\" is {} but {} is expected", found.entries[i].name,
                       describe_entry(found.entries[i]), describe_entry(expected.entries[i]));
  }
  return fmt::format("it has {} bytes but {} are expected", found.size, expected.size);
}

std::byte* map(int fd, const Layout& layout) {
  void* address = ::mmap(nullptr, layout.size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (address == MAP_FAILED) {
    fail("Segment \"{}\" ({} bytes) could not be mapped: {}.", layout.name, layout.size, std::strerror(errno));
  }
  return static_cast<std::byte*>(address);
}

void write_all(int fd, std::span<const std::byte> bytes, const std::string& name) {
  for (std::size_t done = 0; done < bytes.size();) {
    ssize_t written = ::pwrite(fd, bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) fail("The head of segment \"{}\" could not be written: {}.", name, std::strerror(errno));
    done += static_cast<std::size_t>(written);
  }
}

}  // namespace

std::size_t element_size(ElementType type) {
  switch (type) {
    case ElementType::u8:
      return 1;
    case ElementType::bf16:
      return 2;
    case ElementType::i32:
    case ElementType::f32:
      return 4;
    case ElementType::i64:
    case ElementType::u64:
    case ElementType::f64:
      return 8;
  }
  impossible(__FILE__, __LINE__, "an element type that does not exist");
}

std::uint64_t Entry::bytes() const {
  std::uint64_t elements = 1;
  for (std::int64_t extent : shape) elements *= static_cast<std::uint64_t>(extent);
  return elements * element_size(type);
}

std::uint64_t Layout::hash() const {
  std::string text = fmt::format("{} {} {}\n", layout_version, name, size);
  for (const Entry& entry : entries) text += fmt::format("{} {}\n", entry.name, describe_entry(entry));
  return hash64(text);
}

bool Layout::has(const std::string& wanted) const {
  return std::any_of(entries.begin(), entries.end(), [&](const Entry& entry) { return entry.name == wanted; });
}

const Entry& Layout::entry(const std::string& wanted) const {
  auto found = std::find_if(entries.begin(), entries.end(), [&](const Entry& entry) { return entry.name == wanted; });
  GANYMEDE_CHECK(found != entries.end(), "segment \"{}\" has no entry \"{}\"", name, wanted);
  return *found;
}

Layout lay_out(const std::string& name, std::vector<Entry> entries) {
  Layout layout{name, std::move(entries), 0};
  std::uint64_t at = sizeof(SegmentPrefix) + table_bytes(layout).size();
  for (std::size_t i = 0; i < layout.entries.size(); ++i) {
    Entry& entry = layout.entries[i];
    for (std::size_t j = 0; j < i; ++j) {
      if (layout.entries[j].name == entry.name) fail("Segment \"{}\" would have two entries \"{}\".", name, entry.name);
    }
    std::uint64_t bytes = checked_bytes(entry, name);
    entry.offset = round_up(at, bytes >= large_entry ? large_entry : small_alignment);
    at = entry.offset + bytes;
  }
  layout.size = round_up(std::max<std::uint64_t>(at, 1), size_granularity);
  return layout;
}

Segment Segment::create(int fd, const Layout& layout, std::uint64_t job) {
  struct stat status {};
  if (::fstat(fd, &status) != 0 || static_cast<std::uint64_t>(status.st_size) != layout.size) {
    fail("Segment \"{}\" needs memory of {} bytes but was given {}.", layout.name, layout.size, status.st_size);
  }
  write_all(fd, header_bytes(layout, job), layout.name);
  Segment segment;
  segment.base_ = map(fd, layout);
  segment.mapped_ = layout.size;
  segment.layout_ = layout;
  return segment;
}

namespace {

Header read_header_of(int fd, const std::string& name) {
  try {
    return read_header(fd);
  } catch (const Error& error) {
    fail("Segment \"{}\" is damaged. {} Start the same command again: the run goes on from its last checkpoint.", name,
         error.what());
  }
}

}  // namespace

Segment Segment::attach(int fd, const Layout& layout, std::uint64_t job) {
  Header found = read_header_of(fd, layout.name);
  if (found.job != job) {
    fail("Segment \"{}\" belongs to job {:016x}, not to job {:016x}: end the other run first.", found.layout.name,
         found.job, job);
  }
  if (found.layout.name != layout.name) {
    fail("Segment \"{}\" was found where \"{}\" is expected.", found.layout.name, layout.name);
  }
  if (found.layout.hash() != layout.hash()) {
    fail("Segment \"{}\" was made for another configuration: {}.", layout.name, first_difference(found.layout, layout));
  }
  Segment segment;
  segment.base_ = map(fd, layout);
  segment.mapped_ = layout.size;
  segment.layout_ = layout;
  return segment;
}

Layout Segment::describe(int fd) { return read_header(fd).layout; }

Segment::Segment(Segment&& other) noexcept
    : layout_(std::move(other.layout_)),
      base_(std::exchange(other.base_, nullptr)),
      mapped_(std::exchange(other.mapped_, 0)) {}

Segment& Segment::operator=(Segment&& other) noexcept {
  std::swap(layout_, other.layout_);
  std::swap(base_, other.base_);
  std::swap(mapped_, other.mapped_);
  return *this;
}

Segment::~Segment() {
  if (base_ != nullptr) ::munmap(base_, mapped_);
}

}  // namespace ganymede::shm
