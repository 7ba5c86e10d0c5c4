#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace ganymede::optimizer {

/// Memory on page boundaries, as the arrays of segments are: a vector of a CPU's unit never lies on two cache lines.
template <class T>
struct PageAllocator {
  using value_type = T;
  static constexpr std::align_val_t page{4096};

  PageAllocator() = default;
  template <class Other>
  explicit PageAllocator(const PageAllocator<Other>&) {}

  T* allocate(std::size_t count) { return static_cast<T*>(::operator new(count * sizeof(T), page)); }
  void deallocate(T* memory, std::size_t) { ::operator delete(memory, page); }
  bool operator==(const PageAllocator&) const = default;
};

template <class T>
using PageVector = std::vector<T, PageAllocator<T>>;

}  // namespace ganymede::optimizer
