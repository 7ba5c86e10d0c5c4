#pragma once

#include <span>
#include <string>
#include <vector>

#include "common/placement/placement.h"
#include "services/checkpoint/checkpoint_view.h"

namespace ganymede::checkpoint {

/// Arrays of one cell that a checkpoint is read into.
struct CellArrays {
  std::span<float> master;              // [Placement::shard_elements]
  std::vector<std::span<float>> state;  // per column [Placement::columns]
  std::span<std::uint64_t> began = {};  // [parameters][columns], EpochState::began; none: not wanted
};

/// Fills the ranges that this rank owns, and what is known of the ages of all slots, whatever world wrote the
/// checkpoint; gaps between parameters are left as they are. Throws Error when a value is missing or damaged (naming
/// step, part, key and the way out), when a parameter has another shape, or when the checkpoint lacks a state slot.
/// `progress` hears of every value.
void restore(CheckpointView& view, const placement::Placement& placement, const CellArrays& arrays,
             const Progress& progress);

}  // namespace ganymede::checkpoint
