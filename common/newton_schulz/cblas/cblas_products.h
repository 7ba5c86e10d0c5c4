#pragma once

#include <functional>

#include "common/newton_schulz/products.h"

namespace ganymede::newton_schulz {

/// Calls its second argument with 0 … tasks − 1, in any order and on any threads, and returns when all are done.
using RunTasks = std::function<void(std::int64_t tasks, const std::function<void(std::int64_t)>& body)>;

/// fp32 products through OpenBLAS. The threads are the caller's: each tile of 256 × 256 is one call of sgemm on the
/// thread that `run` gives it, and OpenBLAS is told, for the whole process, to use no other. So the bits are the same
/// for any number of threads and any batch; they may differ between families of processors, for which OpenBLAS has
/// other kernels. Not together with libtorch in one program: both define sgemm_.
class CblasProducts : public Products {
 public:
  /// In the calling thread alone.
  CblasProducts();
  /// `run` has that many threads.
  CblasProducts(int workers, RunTasks run);

  Element element() const override { return Element::fp32; }
  void multiply(const Product& product) override;
  void multiply_alone(const Product& product) override;
  int workers() const override { return workers_; }
  void for_each(std::int64_t tasks, const std::function<void(std::int64_t)>& body) override { run_(tasks, body); }

 private:
  int workers_;
  RunTasks run_;
};

}  // namespace ganymede::newton_schulz
