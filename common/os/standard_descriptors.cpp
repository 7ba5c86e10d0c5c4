#include "common/os/standard_descriptors.h"

#include <fcntl.h>
#include <unistd.h>

namespace ganymede::os {

void open_standard_descriptors() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0) continue;
    int null = ::open("/dev/null", O_RDWR);  // the lowest that is free: this one, as those below are open
    if (null != fd && null >= 0) ::close(null);
  }
}

}  // namespace ganymede::os
