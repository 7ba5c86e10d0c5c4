#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

#include "common/os/fd.h"

namespace ganymede::shm {

/// Anonymous memory of a size, as the keeper would give it.
inline os::Fd memory(std::uint64_t bytes) {
  os::Fd fd(::memfd_create("test", MFD_CLOEXEC));
  if (::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) return os::Fd();
  return fd;
}

}  // namespace ganymede::shm
