#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/base/error.h"
#include "common/msg/message.h"
#include "common/os/fd.h"
#include "common/shm/segment.h"
#include "common/shm/segment_header.h"
#include "tests/fault/fuzz/bytes.h"
#include "tests/fault/fuzz/messages.h"

namespace ganymede::fuzz {
namespace {

/// True when the bytes are a message; then all of it is read. Anything but Error ends the test program.
bool is_message(const Bytes& bytes) {
  try {
    msg::Message message = msg::Message::parse(bytes);
    read_all(message);
    return true;
  } catch (const Error&) {
    return false;
  }
}

TEST(FuzzMessage, NoiseIsNeverAMessageAndNeverACrash) {
  for (std::uint64_t seed = 0; seed < 20'000; ++seed) {
    Source source(seed);
    EXPECT_FALSE(is_message(source.noise(source.below(400)))) << seed;
  }
}

TEST(FuzzMessage, AMutatedMessageIsAnErrorOrCanBeReadThroughAndThrough) {
  auto valid = valid_messages();
  int accepted = 0, refused = 0;
  for (std::uint64_t seed = 0; seed < 40'000; ++seed) {
    Source source(seed);
    auto bytes = valid[seed % valid.size()].bytes();
    is_message(source.mutated({bytes.begin(), bytes.end()})) ? ++accepted : ++refused;
  }
  // The mutations must reach both sides of the check, or they test nothing.
  EXPECT_GT(accepted, 1000);
  EXPECT_GT(refused, 1000);
}

os::Fd file_of(const Bytes& head, std::uint64_t size) {
  os::Fd fd(::memfd_create("fuzz", MFD_CLOEXEC));
  if (::pwrite(fd.get(), head.data(), head.size(), 0) != static_cast<ssize_t>(head.size())) ::abort();
  if (::ftruncate(fd.get(), static_cast<off_t>(size)) != 0) ::abort();
  return fd;
}

shm::Layout sample() {
  return shm::lay_out("sample", {{"words", shm::ElementType::u64, {3}, 0},
                                 {"values", shm::ElementType::f32, {100, 1000}, 0},
                                 {"tokens", shm::ElementType::i32, {2, 5, 7}, 0}});
}

/// Whether every entry of a layout that `describe` accepted lies within the file.
bool in_bounds(const shm::Layout& layout, std::uint64_t size) {
  for (const shm::Entry& entry : layout.entries) {
    if (entry.offset > size || entry.bytes() > size - entry.offset) return false;
  }
  return layout.size == size;
}

TEST(FuzzSegment, AMutatedHeadIsAnErrorOrDescribesWhatIsThere) {
  shm::Layout layout = sample();
  auto head = shm::header_bytes(layout, 3);
  int refused = 0;
  for (std::uint64_t seed = 0; seed < 20'000; ++seed) {
    Source source(seed);
    os::Fd fd = file_of(source.mutated(head), layout.size);
    try {
      EXPECT_TRUE(in_bounds(shm::Segment::describe(fd.get()), layout.size)) << seed;
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 10'000);
}

TEST(FuzzSegment, ALyingTableWithTheRightHashIsStillHeldAgainstTheFile) {
  shm::Layout good = sample();
  for (std::uint64_t seed = 0; seed < 5'000; ++seed) {
    Source source(seed);
    shm::Layout lying = good;
    shm::Entry& entry = lying.entries[source.below(3)];
    switch (source.below(3)) {
      case 0:
        entry.offset = source.word() >> source.below(64);
        break;
      case 1:
        entry.shape[0] = static_cast<std::int64_t>(source.word() >> source.below(64));
        break;
      case 2:
        lying.size = source.word() >> source.below(64);
        break;
    }
    os::Fd fd = file_of(shm::header_bytes(lying, 3), good.size);
    try {
      EXPECT_TRUE(in_bounds(shm::Segment::describe(fd.get()), good.size)) << seed;
    } catch (const Error&) {
    }
  }
}

TEST(FuzzSegment, NoiseAndTruncationAreErrors) {
  shm::Layout layout = sample();
  auto head = shm::header_bytes(layout, 3);
  for (std::uint64_t seed = 0; seed < 5'000; ++seed) {
    Source source(seed);
    os::Fd noise = file_of(source.noise(source.below(500)), source.below(2) == 0 ? layout.size : source.below(500));
    EXPECT_THROW(shm::Segment::describe(noise.get()), Error) << seed;
    os::Fd cut = file_of(head, source.below(layout.size));
    EXPECT_THROW(shm::Segment::describe(cut.get()), Error) << seed;
  }
}

}  // namespace
}  // namespace ganymede::fuzz
