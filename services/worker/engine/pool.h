#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace ganymede::worker {

/// The memory that a plan's buffers lie in.
class Pool {
 public:
  /// One allocation, aligned to 2 MiB and offered to the kernel for huge pages. Zero at first. Throws Error when it
  /// cannot be had.
  explicit Pool(std::int64_t bytes);
  /// Memory that somebody else owns and that outlives the pool.
  explicit Pool(std::span<std::byte> memory);
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
