#include "common/collectives/shm/keeper_memory.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "common/base/error.h"
#include "common/shm/segment_header.h"

namespace ganymede::collectives {
namespace {

constexpr double keeper_seconds = 20;

}  // namespace

KeeperMemory::KeeperMemory(shm::KeeperClient keeper, std::vector<std::string> segments, std::uint64_t job)
    : keeper_(std::move(keeper)), segments_(std::move(segments)), job_(job) {}

KeeperMemory::~KeeperMemory() {
  for (const auto& [key, memory] : mapped_) ::munmap(const_cast<std::byte*>(memory.data()), memory.size());
}

std::span<const std::byte> KeeperMemory::map(int rank, std::size_t region) {
  std::lock_guard lock(mutex_);
  if (auto known = mapped_.find({rank, region}); known != mapped_.end()) return known->second;
  if (region >= segments_.size()) fail("Rank {} names region {} of collectives, which does not exist.", rank, region);
  std::string name = shm::held_name(rank, segments_[region]);
  os::Fd fd = keeper_.get(name, Deadline::after_seconds(keeper_seconds));
  shm::Header head = shm::read_header(fd.get());
  if (head.job != job_) fail("Segment \"{}\" belongs to job {:016x}, not to job {:016x}.", name, head.job, job_);
  void* address = ::mmap(nullptr, head.layout.size, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (address == MAP_FAILED) {
    fail("Segment \"{}\" ({} bytes) could not be mapped: {}.", name, head.layout.size, std::strerror(errno));
  }
  std::span<const std::byte> memory(static_cast<const std::byte*>(address), head.layout.size);
  mapped_.emplace(std::pair(rank, region), memory);
  return memory;
}

}  // namespace ganymede::collectives
