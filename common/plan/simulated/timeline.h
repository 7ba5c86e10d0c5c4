#pragma once

#include <vector>

#include "common/plan/executor.h"

namespace ganymede::plan {

/// What a transfer goes over. Transfers of several lanes that are under way on one link at the same time share it
/// evenly: each takes as much longer. What goes over no link takes its own time.
enum class Link : signed char { none, inside_node, between_nodes };

/// What the operations of a plan cost, each by its index. One that is missing takes no time, may start at once, goes
/// over no link, or takes nothing of the device.
struct OperationCosts {
  std::vector<double> durations_ms{};  // alone
  std::vector<double> earliest_ms{};   // before which it does not start, whatever it waits for
  std::vector<Link> links{};
  std::vector<double> taken{};  // of the device, in [0, 1]: computation meanwhile takes 1 / (1 - all of them) as long
};

/// The spans of a plan's operations: each starts when what it waits for is complete and its lane is free. The same for
/// the same plan and costs. No function is called.
std::vector<Span> timeline(const StepPlan& plan, const OperationCosts& costs);

}  // namespace ganymede::plan
