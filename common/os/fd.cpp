#include "common/os/fd.h"

#include <fcntl.h>
#include <unistd.h>

namespace ganymede::os {

Fd& Fd::operator=(Fd&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = other.release();
  }
  return *this;
}

Fd::~Fd() {
  if (fd_ >= 0) ::close(fd_);
}

void open_standard_descriptors() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0) continue;
    int null = ::open("/dev/null", O_RDWR);  // the lowest that is free: this one, as those below are open
    if (null != fd && null >= 0) ::close(null);
  }
}

}  // namespace ganymede::os
