#pragma once

#include <functional>

#include "common/service/service.h"
#include "services/optimizer/cell_memory.h"

namespace ganymede::optimizer {

/// The segments of a cell as the engine sees them; they must outlive it. Throws Error.
CellMemory attach(service::Context& context);

/// How long an update waits with a full side buffer before it cancels the snapshot: well within the time after which
/// workers that wait for the update, and the launcher that sees no progress, would take it for a fault.
double side_wait_seconds(const config::Config& config);

/// The body of the service: loads plugin and state, then applies decided steps until it has to finish or `ended` says
/// so. Throws Error.
void serve(
    service::Context& context, const std::function<bool()>& ended = [] { return false; });

}  // namespace ganymede::optimizer
