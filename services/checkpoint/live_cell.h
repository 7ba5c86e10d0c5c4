#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "common/placement/placement.h"
#include "common/step_protocol/control_block.h"
#include "services/checkpoint/part_writer.h"
#include "services/checkpoint/value_plan.h"

namespace ganymede::checkpoint {

/// The segments of a cell as the reader of a snapshot sees them, while the optimizer server goes on writing.
struct LiveCell {
  const placement::Placement* placement = nullptr;
  step_protocol::ControlBlock* control = nullptr;
  std::span<const float> master;                           // [shard_elements]
  std::vector<std::span<const float>> state;               // per column [Placement::columns]
  std::span<const std::uint64_t> began = {};               // [parameters][columns], EpochState::began
  std::span<step_protocol::Word> read_marks, image_flags;  // [chunks]
  std::span<const float> images;                           // [side slots][1 + columns][chunk_elements]
};

/// Whether the snapshot of `step` is still armed; either side may have cancelled it (rule 20).
bool still_armed(const LiveCell& cell, std::uint64_t step);

/// What this rank's part does not have is done with for the snapshot of `step`: the writer need not save it.
void mark_others(const LiveCell& cell, std::uint64_t step);

/// Armed → ended by compare-and-swap, and wakes the writer. False when it was not armed any more.
bool end_snapshot(const LiveCell& cell, std::uint64_t step);

/// Copies one chunk as it was after `step` (rule 19: read, then look at the flag, and take the image if there is one),
/// then marks it as read, which frees its image. `outputs`: a pointer for the master, then one for each column of
/// state; null for what this chunk does not update.
void read_chunk(const LiveCell& cell, std::uint64_t step, int chunk, std::span<float* const> outputs);

/// Reads the whole snapshot into the writer. `go_on` is asked before each value. False when it was cancelled or
/// `go_on` said so. Throws Error (a full disk).
bool read_snapshot(const LiveCell& cell, std::uint64_t step, const std::vector<PlannedValue>& plan, PartWriter& writer,
                   const std::function<bool()>& go_on);

}  // namespace ganymede::checkpoint
