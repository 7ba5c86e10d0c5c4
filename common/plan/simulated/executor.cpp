#include "common/plan/simulated/executor.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "common/plan/pool_meter.h"

namespace ganymede::plan {
namespace {

/// Operations in the order of their ends; of equal ones, the one that stands first in the list, which keeps
/// dependencies because they point backwards.
std::vector<int> by_end(const std::vector<Span>& spans) {
  std::vector<int> order(spans.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return spans[a].end_ms < spans[b].end_ms; });
  return order;
}

std::string text_of(const std::exception_ptr& fault) {
  try {
    std::rethrow_exception(fault);
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "unknown exception";
  }
}

}  // namespace

ExecutorReport SimulatedExecutor::run(const StepPlan& plan, const OperationTable& table) {
  ExecutorReport report;
  report.spans = timeline(plan, costs_);
  PoolMeter meter(plan);
  std::array<double, lane_count> last_end{};
  for (int index : by_end(report.spans)) {
    const Operation& operation = plan.operations[index];
    auto lane = static_cast<std::size_t>(operation.lane);
    {
      std::lock_guard guard(mutex_);
      if (cancelled_) throw Cancelled(why_);
      if (failed_) throw OperationFailed(why_, fault_);
    }
    try {
      if (const OperationFunction& function = table[operation.kind]) function(operation, index);
    } catch (...) {
      std::lock_guard guard(mutex_);
      if (cancelled_) throw Cancelled(why_);
      failed_ = true;
      fault_ = std::current_exception();
      why_ = describe(operation) + ": " + text_of(fault_);
      throw OperationFailed(why_, fault_);
    }
    meter.complete(index);
    const Span& span = report.spans[index];
    report.lanes[lane].busy_ms += span.end_ms - span.start_ms;
    report.lanes[lane].wait_ms += span.start_ms - last_end[lane];
    last_end[lane] = span.end_ms;
  }
  report.peak_bytes = meter.peak_bytes();
  return report;
}

void SimulatedExecutor::cancel(const std::string& why) {
  std::lock_guard guard(mutex_);
  if (cancelled_ || failed_) return;
  cancelled_ = true;
  why_ = why;
}

}  // namespace ganymede::plan
