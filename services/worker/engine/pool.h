#pragma once

#include <cstddef>
#include <cstdint>

namespace ganymede::worker {

/// The memory that a plan's buffers lie in: one allocation, aligned to 2 MiB and offered to the kernel for huge
/// pages. Zero at first. Throws Error when it cannot be had.
class Pool {
 public:
  explicit Pool(std::int64_t bytes);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  std::byte* data() const { return data_; }
  std::int64_t bytes() const { return bytes_; }

 private:
  std::int64_t bytes_;
  void* mapping_ = nullptr;
  std::size_t mapped_ = 0;
  std::byte* data_ = nullptr;
};

}  // namespace ganymede::worker
