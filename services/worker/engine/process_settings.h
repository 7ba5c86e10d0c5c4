#pragma once

#include "common/config/config.h"

namespace ganymede::worker {

/// Once, before the first tensor: threads of tensor operations, and a memory allocator that keeps what it got (a step
/// asks for the same large blocks again and again; giving them back would cost a page fault a page each time).
void set_up_process(const config::Config& config);

/// Once in each thread that may run tensor operations beside another: one that computes shares them with the threads of
/// the process, others run theirs alone. When the teams of two threads together are more than the cores, libgomp makes
/// every idle member sleep after a microsecond (its GOMP_SPINCOUNT, "throttled"): a quarter of a step was lost so.
void set_up_thread(bool computes);

/// Floating-point operations a second of this process in a matrix product of the compute type, measured now (some
/// 0.2 s) in a thread that ends with it, so that its team is no second one. Other programs on the same cores change it
/// little.
double measure_peak_flops(config::Dtype dtype);

}  // namespace ganymede::worker
