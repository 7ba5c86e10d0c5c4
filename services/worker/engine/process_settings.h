#pragma once

#include "common/config/config.h"

namespace ganymede::worker {

/// Once, before the first tensor: threads of tensor operations, and a memory allocator that keeps what it got (a step
/// asks for the same large blocks again and again; giving them back would cost a page fault a page each time).
void set_up_process(const config::Config& config);

/// Floating-point operations a second of this process in a matrix product of the compute type, measured now (some
/// 0.2 s).
double measure_peak_flops(config::Dtype dtype);

}  // namespace ganymede::worker
