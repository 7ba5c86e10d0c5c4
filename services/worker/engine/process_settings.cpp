#include "services/worker/engine/process_settings.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <malloc.h>

#include <algorithm>
#include <limits>

#include "common/base/deadline.h"
#include "services/worker/engine/workbench.h"

namespace ganymede::worker {

void set_up_process(const config::Config& config) {
  if (config.compute.threads > 0) at::set_num_threads(config.compute.threads);
  ::mallopt(M_ARENA_MAX, 1);  // blocks of other arenas are limited in size
  ::mallopt(M_MMAP_MAX, 0);
  ::mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
}

double measure_peak_flops(config::Dtype dtype) {
  constexpr std::int64_t side = 1024;
  constexpr int rounds = 8;
  auto options = at::TensorOptions().dtype(scalar_type(dtype));
  at::Tensor a = at::ones({side, side}, options), b = at::ones({side, side}, options);
  at::Tensor out = at::empty({side, side}, options);
  double best = 0;
  for (int round = 0; round < rounds; ++round) {
    Clock::time_point begin = Clock::now();
    at::mm_out(out, a, b);
    double seconds = seconds_since(begin);
    best = std::max(best, 2.0 * side * side * side / seconds);
  }
  return best;
}

}  // namespace ganymede::worker
