#pragma once

#include <cstdint>

namespace ganymede::step_protocol {

/// Running mean and variance of one figure.
struct Moments {
  double mean = 0, variance = 0;
};

/// How mean loss and gradient norm of the last applied steps lie: what an outlying step is told by. Part of the
/// decision record, so it survives whatever the record survives, and is the same on all ranks.
struct StepStatistics {
  std::uint64_t steps = 0;  // that went into it, those that hardly count any more included
  Moments loss, grad_norm;
};

/// With a further step. Weighted mean and variance, updated one by one (West, "Updating mean and variance estimates: an
/// improved method", 1979; Finch, "Incremental calculation of weighted mean and variance", 2009, section 9):
///   d = x − mean;  mean += a·d;  variance = (1 − a)·(variance + a·d²)
/// The n-th step has a = 1/n, plain mean and variance of the first n, until 2/(window + 1) is larger and takes its
/// place: then weights fall exponentially, with the mean age of a plain mean over `window` steps. Begins anew when the
/// square of a figure is more than a double holds.
StepStatistics with_step(StepStatistics statistics, double loss, double grad_norm, std::uint64_t window);

/// Half of the window: fewer steps say too little to call another one outlying.
bool has_enough(const StepStatistics& statistics, std::uint64_t window);

/// How many standard deviations `value` lies above the mean; 0: not above it. A thousandth of the mean stands for a
/// smaller deviation, so that what has hardly varied may begin to; with neither (all were 0): 0.
double deviations_above(const Moments& moments, double value);

/// No field is NaN or infinite, no variance negative.
bool sound(const StepStatistics& statistics);

}  // namespace ganymede::step_protocol
