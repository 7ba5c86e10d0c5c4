#pragma once

#include <optional>

#include "launcher/coordinator/next_world.h"

/// What a person wants of the next world, kept from the order until this one is left, where a crash of the launcher
/// does not reach.
namespace ganymede::launcher {

/// Of the run in the current folder. Throw Error.
void note_rescale_order(const coordinator::WorldWish& wish);
std::optional<coordinator::WorldWish> read_rescale_order();
void clear_rescale_order();

}  // namespace ganymede::launcher
