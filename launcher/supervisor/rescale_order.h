#pragma once

#include <cstdint>
#include <optional>

#include "launcher/coordinator/next_world.h"

/// What a person wants of the next world, kept from the order until it has formed, where a crash of the launcher
/// does not reach.
namespace ganymede::launcher {

struct RescaleOrder {
  std::uint64_t job = 0;  // of the world that is left
  coordinator::WorldWish wish;
};

/// Of the run in the current folder. Throw Error.
void note_rescale_order(const RescaleOrder& order);
std::optional<RescaleOrder> read_rescale_order();
void clear_rescale_order();

}  // namespace ganymede::launcher
