#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "services/checkpoint/checkpoint_view.h"

namespace ganymede::checkpoint {

struct Verification {
  std::uint64_t step = 0, bytes = 0, values = 0;
  int parts = 0;
  std::vector<Damage> damage;  // empty: every value of every slot was read and is intact
  /// Over the names of all parameters, sorted, each followed by a zero byte and its master values in element order:
  /// the same whatever world and cut wrote it. Empty when there is damage.
  std::string hash;
};

/// Reads every value. Memory: one value at a time and the list of values. Throws nothing for damage.
Verification verify(CheckpointView& view, const Progress& progress);

}  // namespace ganymede::checkpoint
