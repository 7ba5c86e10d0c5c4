#pragma once

#include <array>
#include <vector>

#include "common/plan/executor.h"

/// What a timeline of a plan, simulated or measured, says about a step.
namespace ganymede::plan {

/// The end of the last operation.
double length_ms(const std::vector<Span>& spans);

struct Interval {
  double from_ms = 0, to_ms = 0;
};
/// The times, ascending, in which nothing computes and something is transferred (lanes gather, reduce, to_host,
/// to_device and exchange): communication that a faster link would shorten.
std::vector<Interval> exposed_communication(const StepPlan& plan, const std::vector<Span>& spans);
double sum_ms(const std::vector<Interval>& intervals);

/// When each buffer is in use: from the start of the operation that takes it to the end of the one that frees it.
std::vector<Interval> buffer_times(const StepPlan& plan, const std::vector<Span>& spans);

/// Bytes of the pool by kind of buffer at the first moment (in list order) when most are alive. Their sum is
/// plan.peak_bytes; the arena is not in the pool.
std::array<std::int64_t, buffer_kinds> peak_by_kind(const StepPlan& plan);

}  // namespace ganymede::plan
