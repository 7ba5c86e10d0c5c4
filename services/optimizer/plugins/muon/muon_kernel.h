#pragma once

#include "common/optimizer_abi/ganymede_optimizer.h"

namespace ganymede::muon {

/// Both phases of Muon's update of one chunk with the widest vectors that this CPU has. Element by element, so its bits
/// depend neither on the vector width nor on how a run is cut into chunks. State slot: momentum. Thread-safe.
///
/// The first: momentum and what is to be orthogonalised.
void update(const GanymedeStep& step, const GanymedeChunk& chunk);
/// The second: the master, from the orthogonalised matrix.
void apply(const GanymedeStep& step, const GanymedeChunk& chunk);

}  // namespace ganymede::muon
