#pragma once

#include "common/config/config.h"
#include "common/placement/placement.h"
#include "common/shm/segment.h"

#include <cstdint>
#include <string>
#include <vector>

/// The layout of every segment of a cell: pure functions of configuration and placement.
namespace ganymede::shm {

/// Before-images that segment "side" can hold: checkpoint.side_fraction of the chunks, at least 4.
std::int64_t side_slots(const config::Config& config, const placement::Placement& placement);

/// "control": entry `block` (step_protocol::ControlBlock), `gradients_ready`, `working_copy_ready` (u64 [buckets]),
/// `expert_counts` (i64 [MoE layers · experts, at least 1], of the decided record), `services` (u64 [4][4]:
/// step_protocol::ServiceWords by service::Kind).
Layout control_layout(const config::Config& config, const placement::Placement& placement);
/// "master": entry `values` (f32 [shard_elements]).
Layout master_layout(const placement::Placement& placement);
/// "gradients": entry `values` (f32 [shard_elements]).
Layout gradients_layout(const placement::Placement& placement);
/// "working": entry `values` (u8 [bytes]): the shard of each bucket in its format; wire::working_form says where.
Layout working_layout(const config::Config& config, const placement::Placement& placement);
/// What depends on the optimizer belongs to a state epoch, and has its number in the name: `placement` is that of the
/// epoch.
std::string state_name(std::uint64_t epoch);
std::string matrices_name(std::uint64_t epoch);
std::string side_name(std::uint64_t epoch);

/// "state.<epoch>": entries `words` (u64 [1]: step_protocol::EpochWords), `ready` (u64 [1]: 1 once a standby server of
/// the epoch can follow), `began` (u64 [parameters][columns]: since when each slot of a parameter has grown),
/// `matrices_sent`, `matrices_returned` (u64 [buckets]: the newest step whose first phases are complete in a bucket,
/// and whose orthogonalised matrices are there), where its optimizers ask for some `reductions` (f64
/// [Reductions::elements], of the newest decided step that the epoch applies or follows), `slot.0`, `slot.1`, … (f32
/// [Placement::columns]), `strips` (u64 [Placement::strips][8]: step_protocol::StripWords) and `redo` (f32
/// [Placement::strips][1 + columns][tile_elements]: new values of one tile of each strip, of the master, then of every
/// state slot; in the first phase of matrices what is orthogonalised in place of the master).
Layout state_layout(const placement::Placement& placement, std::uint64_t epoch);
/// "matrices.<epoch>": `sent` and `returned` (f32 [matrix_elements]): this rank's rows of what is orthogonalised, and
/// of what came of it, with old and new values of per-row slots; and what is handed over to the optimizer server, see
/// handover.h: `handover` (u64 [8]), `handover_in` and `handover_out` (f32 [elements]), `handover_rows_in` and
/// `handover_rows_out` (f32 [row_values]), `handover_parameter` (u64 [matrices]), all of handover_room. Only where this
/// rank has to do with matrices that are updated whole.
Layout matrices_layout(const config::Config& config, const placement::Placement& placement, std::uint64_t epoch);
/// "arena": entry `values` (u8): a slot of plan::hidden_bytes for the saved input of every offloaded layer and row of a
/// micro-batch; the plan says what lies where.
Layout arena_layout(const config::Config& config, const placement::Placement& placement);
/// "batches": `words` (u64 [slots]: the step each slot holds), `header` (u64 [slots][8]: step, loss tokens of the whole
/// step over all ranks, rows of this rank, content hash, zeros), `tokens`, `targets` (-1: no loss), `documents` (i32
/// [slots][rows][seq_len]); `validation_words` (u64 [1]: 0 once published), `validation_header` (u64 [1][8]) and
/// `validation_tokens`, `_targets`, `_documents` (i32 [1][validation rows][seq_len]) for the held-out rows of this
/// rank.
Layout batches_layout(const config::Config& config, const placement::Placement& placement);
/// "side.<epoch>": `read_marks`, `image_flags` (u64 [chunks]) and `images` (f32 [side slots][1 + columns]
/// [chunk_elements]).
Layout side_layout(const config::Config& config, const placement::Placement& placement, std::uint64_t epoch);

/// Those of one state epoch.
std::vector<Layout> epoch_layouts(const config::Config& config, const placement::Placement& placement,
                                  std::uint64_t epoch);
/// All of them for one cell that has this epoch alone, in the order in which the launcher creates them.
std::vector<Layout> cell_layouts(const config::Config& config, const placement::Placement& placement,
                                 std::uint64_t epoch = 0);

/// Number of validation rows that one rank computes: ceil(validation.rows / world).
int validation_rows(const config::Config& config);

}  // namespace ganymede::shm
