#pragma once

#include <optional>

#include "common/step_protocol/control_block.h"

/// The statistics of a step whose record ordered a snapshot, kept until its checkpoint is committed, when the record is
/// long overwritten. Two slots are enough: the checkpoint service of rank 0 commits one checkpoint before it takes the
/// next, and a record orders none while one is under way (rule 18).
namespace ganymede::step_protocol {

/// Those of a record that orders a snapshot take the place of the older ones; nothing else changes. Before decided_step
/// is stored, so a worker that is killed meanwhile does it again. The worker's; one thread.
void keep_statistics(ControlBlock& block, const DecisionRecord& record);

/// Nothing when no record of this step ordered a snapshot.
std::optional<SnapshotStatistics> kept_statistics(const ControlBlock& block, std::uint64_t step);

}  // namespace ganymede::step_protocol
