#pragma once

#include <utility>

namespace ganymede::os {

/// Owner of a file descriptor.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept;
  ~Fd();
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

/// Opens /dev/null for each of the descriptors 0 to 2 that is closed: the next file that is opened would become it, and
/// what is printed would land there. To be called before a thread is started and a file opened.
void open_standard_descriptors();

}  // namespace ganymede::os
