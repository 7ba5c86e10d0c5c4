#pragma once

#include <string>
#include <vector>

namespace ganymede::cli {

/// What a person asks for with `ganymede ctl RUN swap-optimizer`.
struct SwapWish {
  std::string run, name;
  std::vector<std::string> settings;  // "lr=2e-2", see launcher::swap_setting
  bool dry_run = false, force = false, json = false;
  double seconds = 600;  // to wait until it is in force; 0: it is ordered, and nobody waits
};

/// Orders the swap, waits until a step is updated by the new optimizer and prints from which one on; for a dry run
/// prints what would happen and changes nothing. Throws Error(usage) for a plugin, key or value that cannot be, Error
/// when the run refuses it, or would (without a text where JSON says it), when one of its cells cannot follow, when the
/// run ends, when a plugin is not loaded in time, and when it is not in force after `seconds`; then it stays ordered.
void swap_optimizer(const SwapWish& wish);

}  // namespace ganymede::cli
