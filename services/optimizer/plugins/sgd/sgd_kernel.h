#pragma once

#include "common/optimizer_abi/ganymede_optimizer.h"

namespace ganymede::sgd {

/// The update of one chunk by stochastic gradient descent with momentum, with the widest vectors that this CPU has.
/// State slot: momentum; hyper-parameters: momentum, dampening, nesterov. Element by element, so its bits depend
/// neither on the vector width nor on how a run is cut into chunks. Thread-safe.
void update(const GanymedeStep& step, const GanymedeChunk& chunk);

}  // namespace ganymede::sgd
