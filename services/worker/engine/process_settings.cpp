#include "services/worker/engine/process_settings.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <malloc.h>
#include <omp.h>

#include <algorithm>
#include <ctime>
#include <exception>
#include <limits>
#include <thread>

#include "common/base/deadline.h"
#include "services/worker/engine/workbench.h"

namespace ganymede::worker {
namespace {

/// Of all threads of this process so far.
double processor_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double best_product(config::Dtype dtype) {
  constexpr std::int64_t side = 1024;
  constexpr int rounds = 8;
  auto options = at::TensorOptions().dtype(scalar_type(dtype));
  at::Tensor a = at::ones({side, side}, options), b = at::ones({side, side}, options);
  at::Tensor out = at::empty({side, side}, options);
  double best = 0;
  for (int round = 0; round < rounds; ++round) {
    Clock::time_point begin = Clock::now();
    double processor_begin = processor_seconds();
    at::mm_out(out, a, b);
    // On a busy machine threads are put aside, which costs time, but no processor time.
    double seconds = std::min(seconds_since(begin), (processor_seconds() - processor_begin) / at::get_num_threads());
    best = std::max(best, 2.0 * side * side * side / seconds);
  }
  return best;
}

}  // namespace

void set_up_process(const config::Config& config) {
  if (config.compute.threads > 0) at::set_num_threads(config.compute.threads);
  ::mallopt(M_ARENA_MAX, 1);  // blocks of other arenas are limited in size
  ::mallopt(M_MMAP_MAX, 0);
  ::mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
}

void set_up_thread(bool computes) {
  at::get_num_threads();  // libtorch sets the number at a thread's first call, and not again
  if (!computes) ::omp_set_num_threads(1);
}

double measure_peak_flops(config::Dtype dtype) {
  double peak = 0;
  std::exception_ptr fault;
  std::thread([&] {
    try {
      peak = best_product(dtype);
    } catch (...) {
      fault = std::current_exception();
    }
  }).join();
  if (fault) std::rethrow_exception(fault);
  return peak;
}

}  // namespace ganymede::worker
