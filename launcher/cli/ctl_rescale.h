#pragma once

#include <string>

#include "launcher/coordinator/next_world.h"

namespace ganymede::cli {

/// `ganymede ctl RUN rescale [--ranks N] [--expert-group E] [--replicas R] [--without NODE] [--now] [--wait SECONDS]`.
struct RescaleWish {
  std::string run;
  coordinator::WorldWish world;
  bool now = false;      // the step in work is not finished
  double seconds = 600;  // to wait until the new world trains; 0: order it alone
};

/// Orders that the world of a run forms again with other ranks or without some nodes, waits until it trains, and prints
/// what it has become. Throws Error when no job runs there, when the run refuses, ends, or does not train in time.
void rescale(const RescaleWish& wish);

}  // namespace ganymede::cli
