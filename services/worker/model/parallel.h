#pragma once

#include <ATen/Parallel.h>
#include <ATen/core/LegacyTypeDispatch.h>

#include <algorithm>
#include <atomic>
#include <cstdint>

/// Work over ATen's intra-op threads. No result may depend on which thread does what.
namespace ganymede::worker::model {

/// at::parallel_for whose begin and end the memory model sees: OpenMP's own barriers are in a library that the thread
/// sanitizer does not know.
template <class F>
void fork_join(std::int64_t count, std::int64_t grain, const F& f) {
  std::atomic<std::int64_t> seam{0};
  seam.store(1, std::memory_order_release);
  at::parallel_for(0, count, grain, [&](std::int64_t begin, std::int64_t end) {
    seam.load(std::memory_order_acquire);
    f(begin, end);
    seam.fetch_add(1, std::memory_order_release);
  });
  seam.load(std::memory_order_acquire);
}

/// Calls f(row) for each row; rows of `row_elements` elements, so that a thread gets enough work to be worth waking.
template <class F>
void parallel_rows(std::int64_t rows, std::int64_t row_elements, const F& f) {
  const std::int64_t grain = std::max<std::int64_t>(1, 8192 / std::max<std::int64_t>(1, row_elements));
  fork_join(rows, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) f(row);
  });
}

/// How many values of `worker` parallel_tasks may pass.
inline std::int64_t task_workers() { return at::in_parallel_region() ? 1 : at::get_num_threads(); }

/// Calls f(task, worker) for each task, the next one whenever a worker is free; worker names a scratch area that no
/// other running task has.
template <class F>
void parallel_tasks(std::int64_t count, const F& f) {
  const std::int64_t workers = std::min(task_workers(), count);
  std::atomic<std::int64_t> next{0};
  fork_join(workers, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t worker = begin; worker < end; ++worker) {
      for (std::int64_t task; (task = next.fetch_add(1, std::memory_order_relaxed)) < count;) f(task, worker);
    }
  });
}

/// While it lives, products of the calling thread are computed by this thread alone and without autograd. The BLAS
/// library picks other code for small products when it has several threads, even where it then uses one.
class OneThread {
 public:
  OneThread();
  ~OneThread();
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  at::AutoDispatchBelowADInplaceOrView no_autograd_;
  int blas_threads_;
};

}  // namespace ganymede::worker::model
