#include "services/worker/engine/exposed_update.h"

#include <algorithm>

namespace ganymede::worker {
namespace {

using plan::Interval;
using plan::OperationKind;

using Intervals = std::vector<Interval>;

/// Those that touch become one.
Intervals merged(Intervals all) {
  std::sort(all.begin(), all.end(), [](const Interval& a, const Interval& b) { return a.from_ms < b.from_ms; });
  Intervals result;
  for (const Interval& next : all) {
    if (next.to_ms <= next.from_ms) continue;
    if (!result.empty() && next.from_ms <= result.back().to_ms) {
      result.back().to_ms = std::max(result.back().to_ms, next.to_ms);
    } else {
      result.push_back(next);
    }
  }
  return result;
}

/// What is in `all` and not in `without`; both merged.
Intervals difference(const Intervals& all, const Intervals& without) {
  Intervals result;
  for (Interval left : all) {
    for (const Interval& hole : without) {
      if (hole.to_ms <= left.from_ms || hole.from_ms >= left.to_ms) continue;
      if (hole.from_ms > left.from_ms) result.push_back({left.from_ms, hole.from_ms});
      left.from_ms = std::max(left.from_ms, hole.to_ms);
    }
    if (left.from_ms < left.to_ms) result.push_back(left);
  }
  return result;
}

bool waits_for_update(const plan::Operation& operation) {
  return operation.kind == OperationKind::gather || operation.kind == OperationKind::wait_update;
}

}  // namespace

Intervals exposed_update(const plan::StepPlan& plan, const std::vector<plan::Span>& spans) {
  Intervals waits, others;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const plan::Operation& operation = plan.operations[i];
    double began = spans[i].start_ms + spans[i].outside.words_ms;
    if (waits_for_update(operation)) waits.push_back({spans[i].start_ms, began});
    if (operation.kind == OperationKind::wait_batch) others.push_back({spans[i].start_ms, began});
    if (operation.lane != plan::Lane::host) others.push_back({began, spans[i].end_ms});
  }
  return difference(merged(std::move(waits)), merged(std::move(others)));
}

}  // namespace ganymede::worker
