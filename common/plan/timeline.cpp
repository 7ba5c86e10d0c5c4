#include "common/plan/timeline.h"

#include <algorithm>

namespace ganymede::plan {
namespace {

bool computes(const Operation& operation) { return operation.lane == Lane::compute; }

bool transfers(const Operation& operation) {
  return operation.lane == Lane::gather || operation.lane == Lane::reduce || operation.lane == Lane::to_host ||
         operation.lane == Lane::to_device || operation.lane == Lane::exchange;
}

/// The union of the spans of operations for which `wanted` holds.
template <class Wanted>
std::vector<Interval> covered(const StepPlan& plan, const std::vector<Span>& spans, Wanted wanted) {
  std::vector<Interval> all;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    if (wanted(plan.operations[i]) && spans[i].end_ms > spans[i].start_ms) {
      all.push_back({spans[i].start_ms + spans[i].outside.words_ms, spans[i].end_ms});
    }
  }
  std::sort(all.begin(), all.end(), [](const Interval& a, const Interval& b) { return a.from_ms < b.from_ms; });
  std::vector<Interval> merged;
  for (const Interval& next : all) {
    if (!merged.empty() && next.from_ms <= merged.back().to_ms) {
      merged.back().to_ms = std::max(merged.back().to_ms, next.to_ms);
    } else {
      merged.push_back(next);
    }
  }
  return merged;
}

}  // namespace

double length_ms(const std::vector<Span>& spans) {
  double end = 0;
  for (const Span& span : spans) end = std::max(end, span.end_ms);
  return end;
}

std::vector<Interval> exposed_communication(const StepPlan& plan, const std::vector<Span>& spans) {
  std::vector<Interval> busy = covered(plan, spans, computes), exposed;
  std::size_t next = 0;
  for (Interval left : covered(plan, spans, transfers)) {
    while (next < busy.size() && busy[next].to_ms <= left.from_ms) ++next;
    for (std::size_t i = next; i < busy.size() && busy[i].from_ms < left.to_ms; ++i) {
      if (busy[i].from_ms > left.from_ms) exposed.push_back({left.from_ms, busy[i].from_ms});
      left.from_ms = std::max(left.from_ms, busy[i].to_ms);
    }
    if (left.from_ms < left.to_ms) exposed.push_back(left);
  }
  return exposed;
}

double sum_ms(const std::vector<Interval>& intervals) {
  double sum = 0;
  for (const Interval& interval : intervals) sum += interval.to_ms - interval.from_ms;
  return sum;
}

std::vector<Interval> buffer_times(const StepPlan& plan, const std::vector<Span>& spans) {
  std::vector<Interval> times(plan.buffers.size());
  for (std::size_t i = 0; i < plan.operations.size(); ++i) {
    for (int b : plan.operations[i].takes) times[b].from_ms = spans[i].start_ms;
    for (int b : plan.operations[i].frees) times[b].to_ms = spans[i].end_ms;
  }
  return times;
}

std::array<std::int64_t, buffer_kinds> peak_by_kind(const StepPlan& plan) {
  std::array<std::int64_t, buffer_kinds> alive{}, at_peak{};
  std::int64_t sum = 0, most = 0;
  auto count = [&](const std::vector<int>& buffers, int sign) {
    for (int b : buffers) {
      if (plan.buffers[b].kind == BufferKind::arena) continue;
      alive[static_cast<std::size_t>(plan.buffers[b].kind)] += sign * plan.buffers[b].bytes;
      sum += sign * plan.buffers[b].bytes;
    }
  };
  for (const Operation& operation : plan.operations) {
    count(operation.takes, 1);
    if (sum > most) {
      most = sum;
      at_peak = alive;
    }
    count(operation.frees, -1);
  }
  return at_peak;
}

}  // namespace ganymede::plan
