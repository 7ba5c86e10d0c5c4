#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "common/os/machine.h"

namespace {

/// What the launcher sets for a worker. MKL reads it at the first product, so it is set before any test runs.
const bool reproducible_mkl = [] {
  setenv("MKL_CBWR", ganymede::os::inspect_machine().avx512 ? "AVX512,STRICT" : "AVX2,STRICT", 1);
  // The tests choose the number of threads.
  at::set_num_threads(1);
  return true;
}();

}  // namespace
