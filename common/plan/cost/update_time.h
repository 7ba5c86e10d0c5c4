#pragma once

#include <vector>

#include "common/plan/cost/hardware.h"
#include "common/plan/plan.h"

/// The optimizer server's update of the step before, which begins with a step and goes through the buckets in forward
/// order. It is no operation of the plan: operations wait for it.
namespace ganymede::plan {

/// Milliseconds of an update, limited by host memory; without what the worker does to orthogonalise matrices.
double update_ms(const config::Config& config, const placement::Placement& placement, const Hardware& hardware);

/// Milliseconds after the begin of the step from which each operation finds updated what it waits for: a gather its
/// bucket (the other ranks are as far as this one), wait_update everything, all others nothing.
std::vector<double> updated_from_ms(const StepPlan& plan, const config::Config& config,
                                    const placement::Placement& placement, const Hardware& hardware);

}  // namespace ganymede::plan
