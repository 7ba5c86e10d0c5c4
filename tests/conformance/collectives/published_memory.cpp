#include "tests/conformance/collectives/published_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <map>
#include <mutex>

#include "common/base/error.h"

namespace ganymede::collectives {

PublishedMemory::Mapping::Mapping(int fd, bool writable) {
  int protection = writable ? PROT_READ | PROT_WRITE : PROT_READ;
  void* address = ::mmap(nullptr, bytes, protection, MAP_SHARED, fd, 0);
  GANYMEDE_CHECK(address != MAP_FAILED, "no memory for a test");
  base = static_cast<std::byte*>(address);
}

PublishedMemory::Mapping::~Mapping() {
  if (base != nullptr) ::munmap(base, bytes);
}

/// Peers are mapped to be read only: a rank that writes there crashes the test.
class PublishedMemory::Peers : public PeerMemory {
 public:
  explicit Peers(std::shared_ptr<PublishedMemory> memory) : memory_(std::move(memory)) {}
  std::span<const std::byte> map(int rank, std::size_t region) override {
    std::lock_guard lock(mutex_);
    std::size_t index = static_cast<std::size_t>(rank) * 2 + region;
    if (region > 1 || index >= memory_->memory_.size()) fail("Rank {} has no region {}.", rank, region);
    auto known = mapped_.find(index);
    if (known == mapped_.end()) known = mapped_.emplace(index, Mapping(memory_->memory_[index].get(), false)).first;
    return {known->second.base, bytes};
  }

 private:
  std::shared_ptr<PublishedMemory> memory_;
  std::mutex mutex_;
  std::map<std::size_t, Mapping> mapped_;
};

PublishedMemory::PublishedMemory(int ranks) {
  for (int i = 0; i < 2 * ranks; ++i) {
    os::Fd fd(::memfd_create("published", MFD_CLOEXEC));
    GANYMEDE_CHECK(fd && ::ftruncate(fd.get(), bytes) == 0, "no memfd for a test");
    writable_.emplace_back(fd.get(), true);
    memory_.push_back(std::move(fd));
  }
}

std::unique_ptr<Port> PublishedMemory::port(int rank) {
  std::size_t first = static_cast<std::size_t>(rank) * 2;
  Port::Spec spec;
  spec.rank = rank;
  spec.regions = {{"working", writable_[first].base, bytes}, {"exchange", writable_[first + 1].base, bytes}};
  spec.channels_region = 1;
  spec.channels_memory = {writable_[first + 1].base, channels_bytes};
  spec.peers = std::make_shared<Peers>(shared_from_this());
  return std::make_unique<Port>(std::move(spec));
}

std::span<std::byte> PublishedMemory::data(int rank, int region) const {
  std::size_t used = region == 1 ? channels_bytes : 0;
  return {writable_[static_cast<std::size_t>(rank) * 2 + region].base + used, bytes - used};
}

}  // namespace ganymede::collectives
