#include "services/worker/engine/pool.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "common/base/error.h"

namespace ganymede::worker {

Pool::Pool(std::int64_t bytes) : bytes_(bytes) {
  constexpr std::size_t huge = 2u << 20;
  mapped_ = (static_cast<std::size_t>(bytes) + huge - 1) / huge * huge + huge;
  mapping_ = ::mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping_ == MAP_FAILED) {
    fail(
        "{} bytes for the worker's pool cannot be had ({}): use a smaller model, fewer rows or a larger "
        "offload.fraction",
        bytes, std::strerror(errno));
  }
  data_ = static_cast<std::byte*>(mapping_);
  data_ += (huge - reinterpret_cast<std::uintptr_t>(data_) % huge) % huge;
  ::madvise(mapping_, mapped_, MADV_HUGEPAGE);  // only a hint: without huge pages it is slower, not wrong
}

Pool::Pool(std::span<std::byte> memory) : bytes_(static_cast<std::int64_t>(memory.size())), data_(memory.data()) {}

Pool::~Pool() {
  if (mapping_ != nullptr) ::munmap(mapping_, mapped_);
}

}  // namespace ganymede::worker
