#pragma once

#include "common/config/config.h"
#include "common/placement/placement.h"
#include "common/shm/segment.h"

#include <cstdint>
#include <string>
#include <vector>

/// The layout of every segment of a cell: pure functions of configuration and placement.
namespace ganymede::shm {

/// "control": entry `block` (step_protocol::ControlBlock), `gradients_ready`, `working_copy_ready` (u64 [buckets]),
/// `expert_counts` (i64 [MoE layers · experts], of the decided record), `services` (ServiceWords).
Layout control_layout(const config::Config& config, const placement::Placement& placement);
/// "master": entry `values` (f32 [shard_elements]).
Layout master_layout(const placement::Placement& placement);
/// "gradients": entry `values` (f32 [shard_elements]).
Layout gradients_layout(const placement::Placement& placement);
/// "working": entry `values` (dtype of wire.gather [shard_elements]).
Layout working_layout(const config::Config& config, const placement::Placement& placement);
/// "state.<epoch>": entry per state slot of the optimizer (f32 [shard_elements]) and `redo`
/// (f32 [1 + slots][chunk_elements], then the working copy's chunk).
Layout state_layout(const placement::Placement& placement, const std::vector<std::string>& slots, int epoch);
/// "arena": entry `values` (bytes): saved layer inputs that `offload.fraction` puts into host memory.
Layout arena_layout(const config::Config& config, const placement::Placement& placement);
/// "batches": `words` (u64 [slots]: the step each slot holds), per slot `header` (u64 [8]), `tokens`, `targets`,
/// `documents` (i32 [slots][rows][seq_len]); `validation_*` the same for the held-out rows of this rank, once.
Layout batches_layout(const config::Config& config, const placement::Placement& placement);
/// "side": `read_marks`, `image_flags` (u64 [chunks]) and `images` (f32 [side slots][1 + slots][chunk_elements]).
Layout side_layout(const config::Config& config, const placement::Placement& placement,
                   const std::vector<std::string>& slots);

/// All of them for one cell, in the order in which the launcher creates them.
std::vector<Layout> cell_layouts(const config::Config& config, const placement::Placement& placement,
                                 const std::vector<std::string>& slots);

/// Number of validation rows that one rank computes: ceil(validation.rows / world).
int validation_rows(const config::Config& config);

}  // namespace ganymede::shm
