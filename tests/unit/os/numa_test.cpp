#include "common/os/numa.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <cstring>

#include "common/base/error.h"
#include "common/os/fd.h"
#include "common/os/machine.h"

namespace ganymede::os {
namespace {

constexpr std::size_t bytes = (std::size_t{130} << 20) + 4096;  // more than two pieces, no multiple of one

/// Shared memory that has no pages yet.
class SharedMemory {
 public:
  SharedMemory() : fd_(::memfd_create("numa_test", MFD_CLOEXEC)) {
    EXPECT_EQ(::ftruncate(fd_.get(), bytes), 0);
    base = static_cast<std::byte*>(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0));
    EXPECT_NE(base, MAP_FAILED);
  }
  ~SharedMemory() { ::munmap(base, bytes); }
  /// Pages that have memory.
  std::size_t resident() const {
    std::vector<unsigned char> pages(bytes / 4096);
    EXPECT_EQ(::mincore(base, bytes, pages.data()), 0);
    return static_cast<std::size_t>(std::count_if(pages.begin(), pages.end(), [](auto page) { return page & 1; }));
  }
  int fd() const { return fd_.get(); }
  std::byte* base = nullptr;

 private:
  Fd fd_;
};

std::vector<int> all_cores() { return cores_of(0, 1, inspect_machine()); }
void silent(std::size_t) {}

TEST(PlaceMemory, GivesEveryPageItsMemoryOnTheNodesOfTheCores) {
  SharedMemory memory;
  EXPECT_EQ(memory.resident(), 0u);
  auto nodes = nodes_of_cores(all_cores());
  std::atomic<std::size_t> touched = 0;
  place_memory(memory.base, bytes, nodes, all_cores(), [&](std::size_t more) { touched += more; });
  EXPECT_EQ(touched, bytes);
  EXPECT_EQ(memory.resident(), bytes / 4096);
  EXPECT_NO_THROW(verify_placement(memory.base, bytes, nodes));
}

TEST(PlaceMemory, KeepsWhatIsThere) {
  SharedMemory memory;
  std::memset(memory.base + 5000, 7, 3);
  place_memory(memory.base, bytes, {}, all_cores(), silent);
  EXPECT_EQ(std::to_integer<int>(memory.base[5002]), 7);
  EXPECT_EQ(std::to_integer<int>(memory.base[5003]), 0);
}

TEST(PlaceMemory, EndsWithWhatItsProgressThrows) {
  SharedMemory memory;
  EXPECT_THROW(place_memory(memory.base, bytes, {}, all_cores(), [](std::size_t) { fail("enough"); }), Error);
}

TEST(PlaceMemory, RefusesANodeThatDoesNotExist) {
  SharedMemory memory;
  EXPECT_THAT([&] { place_memory(memory.base, bytes, {900}, all_cores(), silent); },
              ::testing::ThrowsMessage<Error>(::testing::HasSubstr("cannot be bound to NUMA node 900")));
}

TEST(VerifyPlacement, NamesMemoryThatLiesElsewhere) {
  SharedMemory memory;
  place_memory(memory.base, bytes, {}, all_cores(), silent);
  EXPECT_THAT([&] { verify_placement(memory.base, bytes, {900}); },
              ::testing::ThrowsMessage<Error>(::testing::HasSubstr("not on NUMA node 900")));
}

TEST(NodesOfMemory, AreThoseThatItWasPlacedOn) {
  SharedMemory memory;
  auto nodes = nodes_of_cores(all_cores());
  place_memory(memory.base, bytes, nodes, all_cores(), silent);
  EXPECT_EQ(nodes_of_memory(memory.fd(), bytes), nodes);
}

TEST(VerifyPlacement, NoticesMemoryThatWasNeverTouched) {
  SharedMemory memory;
  EXPECT_THROW(verify_placement(memory.base, bytes, nodes_of_cores(all_cores())), Error);
}

}  // namespace
}  // namespace ganymede::os
