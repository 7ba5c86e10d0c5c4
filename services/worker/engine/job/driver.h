#pragma once

#include "common/service/service.h"

namespace ganymede::worker {

/// The service's body: joins generations and computes steps until the last one is committed on all ranks, or the
/// service is asked to finish. Throws Error for what a new generation cannot mend.
void drive(service::Context& context);

}  // namespace ganymede::worker
