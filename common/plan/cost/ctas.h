#pragma once

#include <vector>

#include "common/plan/cost/hardware.h"
#include "common/plan/plan.h"
#include "common/plan/traffic.h"

/// What collectives take of a device that computes meanwhile: their kernels keep multiprocessors busy, one a thread
/// block (CTA). collectives.max_ctas caps each communicator.
namespace ganymede::plan {

/// Thread blocks of the communicator that carries the operation: the cap of the configuration where it is less than
/// what the hardware says of a communicator that nothing caps. 0 where a machine has no multiprocessors, and for
/// operations that meet nobody by a kernel (the vote, copies between host and device).
int ctas_of(OperationKind kind, const config::Config& config, const Hardware& hardware);

/// The rate in GB/s, a direction, that these thread blocks can move; infinite where the hardware says nothing of it.
double most_gb_per_second(OperationKind kind, const config::Config& config, const Hardware& hardware);

/// By operation, the share of the multiprocessors, in [0, 1], that computation lacks while the operation is under way;
/// 0 for what moves nothing. `sent`: by operation.
std::vector<double> taken_shares(const StepPlan& plan, const std::vector<Moved>& sent, const config::Config& config,
                                 const Hardware& hardware);

}  // namespace ganymede::plan
