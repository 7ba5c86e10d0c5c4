#include "common/os/standard_descriptors.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ganymede::os {
namespace {

/// Whether `fd` is /dev/null, open for both ways.
bool is_null(int fd) {
  struct stat one {
  }, null{};
  return ::fstat(fd, &one) == 0 && ::stat("/dev/null", &null) == 0 && one.st_rdev == null.st_rdev &&
         (::fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDWR;
}

TEST(Descriptors, ClosedStandardOnesBecomeTheNullDeviceAndOpenOnesStay) {
  for (int closed = 0; closed < 8; ++closed) {
    int child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      int ends[2];
      if (::pipe(ends) != 0) ::_exit(2);
      for (int fd = 0; fd < 3; ++fd) closed & 1 << fd ? ::close(fd) : ::dup2(ends[1], fd);
      open_standard_descriptors();
      for (int fd = 0; fd < 3; ++fd)
        if (is_null(fd) != ((closed & 1 << fd) != 0)) ::_exit(1);
      ::_exit(0);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << closed;
  }
}

}  // namespace
}  // namespace ganymede::os
