#pragma once

#include <cstdint>

#include "common/placement/placement.h"
#include "common/service/service.h"
#include "services/optimizer/cell_memory.h"

namespace ganymede::optimizer {

/// Initial values into master, zeros into the state. May be done again from the start. Some 15 ns an element.
void fill_initial(const placement::Placement& placement, std::uint64_t seed, const CellMemory& memory);

/// Writes the whole working copy from the master and says that it holds `step`, bucket by bucket.
void publish_all(const placement::Placement& placement, std::uint64_t step, const CellMemory& memory);

/// Brings the cell to `state_ready`: what a fresh start or the restored checkpoint gives; nothing when a predecessor
/// did it. False when the service has to finish first. Throws Error when nothing was restored in time.
bool load_state(service::Context& context, const placement::Placement& placement, const CellMemory& memory);

}  // namespace ganymede::optimizer
