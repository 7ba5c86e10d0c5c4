#pragma once

#include "common/optimizer_abi/ganymede_optimizer.h"

namespace ganymede::lion {

/// Lion's update of one chunk with the widest vectors that this CPU has. State slot: momentum; hyper-parameters: beta1,
/// beta2. Element by element, so its bits depend neither on the vector width nor on how a run is cut into chunks.
/// Thread-safe.
void update(const GanymedeStep& step, const GanymedeChunk& chunk);

}  // namespace ganymede::lion
