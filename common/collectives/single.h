#pragma once

#include <memory>

#include "common/collectives/collectives.h"

namespace ganymede::collectives {

/// A group of one: every operation is a local copy and complete at once. Needs no store.
std::unique_ptr<Communicator> make_single(const Group& group);

}  // namespace ganymede::collectives
