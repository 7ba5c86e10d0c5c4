#pragma once

#include <vector>

#include "common/placement/matrices.h"
#include "common/plan/cost/hardware.h"
#include "common/plan/plan.h"
#include "common/plan/simulated/timeline.h"
#include "common/plan/traffic.h"

/// How long each operation of a plan takes on a machine that is described by a few numbers.
namespace ganymede::plan {

/// Milliseconds by operation. Compute: flops by kind at peak times efficiency, but not less than reading the
/// parameters and adding to the gradients takes. Transfers: bytes by `choices` inside the node and between nodes, one
/// after the other, and a latency for every doubling of the group. Waits for batches and updates take no time.
std::vector<double> hardware_durations(const StepPlan& plan, const config::Config& config,
                                       const placement::Placement& placement, const TrafficChoices& choices,
                                       const Hardware& hardware);

/// Bytes that each gather, reduction, dispatch, combine and transfer of matrices sends by `choices`; none for other
/// operations. Configuration, placement and choices outlive it.
class OperationTraffic {
 public:
  OperationTraffic(const config::Config& config, const placement::Placement& placement, const TrafficChoices& choices)
      : config_(config), placement_(placement), choices_(choices), matrices_(placement::matrices_of(placement)) {}
  Moved of(const Operation& operation) const;

 private:
  const config::Config& config_;
  const placement::Placement& placement_;
  const TrafficChoices& choices_;
  std::vector<placement::BucketMatrices> matrices_;
};

/// By what each operation sends: the link between nodes where anything crosses it, else that inside the node. An
/// operation counts for it as long as it lasts, with the sums that it makes of what has come.
std::vector<Link> links_of(const std::vector<Moved>& sent);

}  // namespace ganymede::plan
