#pragma once

#include <functional>

#include "common/service/run_directory.h"
#include "common/service/service.h"
#include "services/optimizer/cell_memory.h"
#include "services/optimizer/step_values.h"

namespace ganymede::optimizer {

/// The segments of a cell as the engine of a state epoch sees them; they must outlive it. Throws Error.
CellMemory attach(service::Context& context, std::uint64_t epoch = 0);

/// Tables of an epoch's plugins, from the copies that were made when the epoch was. Throws Error when one of them is
/// not what it was then.
Tables load_plugins(const std::vector<service::JobPlugin>& plugins);

/// How long an update waits with a full side buffer before it cancels the snapshot: well within the time after which
/// workers that wait for the update, and the launcher that sees no progress, would take it for a fault.
double side_wait_seconds(const config::Config& config);

/// The body of the service: loads the plugins of the state epoch and its state, then applies decided steps until it has
/// to finish, `ended` says so, or another epoch's server has taken over. Of an epoch that is not in force it is the
/// standby server: says that it is ready, waits for the record that names the swap, takes over what it can of the state
/// in force, and follows. Throws Error.
void serve(service::Context& context, std::uint64_t epoch, const std::function<bool()>& ended);
/// Of the epoch that the service was started for.
void serve(
    service::Context& context, const std::function<bool()>& ended = [] { return false; });

}  // namespace ganymede::optimizer
