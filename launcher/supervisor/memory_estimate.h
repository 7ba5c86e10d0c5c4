#pragma once

#include "common/config/config.h"
#include "common/os/machine.h"
#include "common/service/run_directory.h"
#include "launcher/coordinator/world_layout.h"
#include "launcher/supervisor/host_budget.h"

namespace ganymede::launcher {

/// The host memory that one node's cells, those of `ranks`, need: every segment, exactly (of the rank that needs most),
/// and what the services' own processes take beside them, estimated. Throws Error(usage) when the configuration cannot
/// be placed.
HostBudget estimate_memory(const config::Config& config, const service::Job& job, coordinator::RankRange ranks,
                           const os::Machine& machine);

/// The host memory that the standby servers of another optimizer need beside all that runs, and what is left for them:
/// the segments of the epoch and the process. `config`: with that optimizer. `running`: what the run itself needs.
HostBudget estimate_epoch_memory(const config::Config& config, const service::JobEpoch& epoch,
                                 coordinator::RankRange ranks, const HostBudget& running, const os::Machine& machine);

/// What the services of one cell take beside segments and the worker's pool, estimated: bytes. `computes`: the worker
/// computes in this memory.
std::uint64_t services_bytes(const config::Config& config, bool computes);

/// Bytes of the segments of one state epoch, of all cells of `ranks`. `config`: the epoch's.
std::uint64_t epoch_bytes(const config::Config& config, const service::JobEpoch& epoch, coordinator::RankRange ranks);

/// Bytes of all segments of the cells of `ranks`.
std::uint64_t segment_bytes(const config::Config& config, const service::Job& job, coordinator::RankRange ranks);

}  // namespace ganymede::launcher
