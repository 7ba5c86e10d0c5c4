#pragma once

#include <atomic>
#include <cstdint>

#include "common/step_protocol/step_statistics.h"

/// The words that the processes of one cell share, in the segment `control`. Each word has one writer; every store
/// is a release and every load an acquire. All plain 64-bit words: a futex waits on their low half.
namespace ganymede::step_protocol {

using Word = std::atomic<std::uint64_t>;

/// Value of a word of `working_copy_ready` or `batch slots` before its first publication.
constexpr std::uint64_t never = ~std::uint64_t{0};

/// That the plugins of a run may have together.
constexpr std::size_t most_hyper_parameters = 48;

/// Groups of parameters under rules of their own, [optimizer] itself included.
constexpr std::size_t most_update_groups = 8;

/// Of one group of parameters.
struct GroupValues {
  double lr, weight_decay;
};

/// What one step decided, written by the worker of each cell alike (rule 9). Self-contained: a log line, a replay
/// after a crash and the update all need nothing else. Expert counts follow in the entry `expert_counts`,
/// reductions that optimizers ask for in the segments of their state epochs.
struct DecisionRecord {
  std::uint64_t step = 0;
  double loss_sum = 0;  // over all loss tokens of the step, summed in rank order
  std::uint64_t loss_tokens = 0;
  double grad_norm = 0;             // of the whole model before clipping
  double clip_factor = 1;           // gradients are multiplied by it
  double lr = 0, weight_decay = 0;  // of what is in no group of its own
  std::uint64_t group_count = 0;
  GroupValues groups[most_update_groups] =
      {};  // in the order of placement::UpdateGroups; the first repeats lr and decay
  std::uint64_t hyper_count = 0;
  double hyper[most_hyper_parameters] = {};  // of all plugins of the run, in the order of "PLUGIN.KEY"
  std::uint64_t apply = 1;                   // 0: the step is skipped, see skip_reason
  std::uint64_t skipped_in_row = 0;          // steps up to and with this one, since load_step
  std::uint64_t stop_after = 0;              // 1: the run ends when this step is committed everywhere
  std::uint64_t snapshot_after = 0;          // 1: a checkpoint of the state after this step
  std::uint64_t snapshot_before = 0;         // 1: the record before this one ordered one (see rule 18)
  std::uint64_t state_epoch = 0;
  std::uint64_t optimizer_hash = 0;  // of the plugin files
  std::uint64_t change_number = 0;   // of the setting that this step follows (rule 16); 0: the one the run began with
  std::uint64_t change_step = 0;     // first step that follows it
  std::uint64_t counts_hash = 0;     // hash64 of the expert counts
  std::uint64_t skip_reason = 0;     // SkipReason
  StepStatistics statistics = {};    // of the applied steps up to and with this one
  std::uint64_t updates = 0;         // that the parameters have seen up to and with this step; a skipped one is none
  std::uint64_t swap_change = 0;     // number of the change whose optimizer is being warmed up, see swap.h; 0: none
  std::uint64_t swap_step = 0;       // the first step whose record named it
  std::uint64_t swap_updates = 0;    // `updates` of that record
  std::uint64_t refused_change = 0;  // newest change that some cell could not follow; 0: none
  // hash64 of the entry `reductions` of state_epoch, and of the epoch that follows this step; 0: there is none
  std::uint64_t reductions_hash = 0, swap_reductions_hash = 0;
  std::uint64_t checksum = 0;  // hash64 of all fields above

  std::uint64_t compute_checksum() const;
  bool intact() const { return checksum == compute_checksum(); }
};

/// What a person may change while the job runs: all of it with a number, never a delta (rule 16).
struct Setting {
  std::uint64_t number = 0;  // 0: what the run began with
  double lr = 0;             // that the schedule starts from
  double weight_decay = 0, clip_norm = 0;
  std::uint64_t group_count = 0;
  GroupValues groups[most_update_groups] = {};  // those of the configuration, by name; -1: as lr, weight_decay
  std::uint64_t hyper_count = 0;
  double hyper[most_hyper_parameters] = {};  // as in DecisionRecord
  std::uint64_t state_epoch = 0;             // whose optimizer these values are for
  std::uint64_t warm_steps = 0;              // that it follows before it takes over from the one of another epoch
  std::uint64_t checksum = 0;                // hash64 of all fields above

  std::uint64_t compute_checksum() const;
  bool intact() const { return checksum == compute_checksum(); }
};

/// Of a step whose record ordered a snapshot, see snapshot_statistics.h.
struct SnapshotStatistics {
  std::uint64_t step = 0;
  StepStatistics statistics = {};
  std::uint64_t updates = 0;   // as in DecisionRecord
  std::uint64_t checksum = 0;  // hash64 of all fields above

  std::uint64_t compute_checksum() const;
  bool intact() const { return checksum == compute_checksum(); }
};

/// Settings that a cell keeps, by number. Two would do, see change.h.
constexpr std::size_t setting_slots = 4;

/// Fixed part of the segment `control`; the arrays named in `shm::control_layout` follow it.
struct ControlBlock {
  // Written once by the launcher, before any service starts.
  Word incarnation;  // of the run's state: +1 whenever all go back to a checkpoint
  Word load_step;    // the checkpoint to start from; 0: a fresh start
  // Written by the launcher.
  Word generation;        // of the membership
  Word stop_request;      // 1: end after the current step
  Word snapshot_request;  // number of the newest order of a person for a checkpoint
  Word prepared_change;   // number of the newest setting that lies in its slot; only grows
  Word refused_change;    // number of the newest swap whose standby optimizer server does not run here; only grows
  // The world is left, and its memory saved: a step that the checkpoint service writes although no record orders it,
  // and for which replicas beside its own (bit r: what replica r answers for). `rescue_step` last; 0: none.
  Word rescue_replicas, rescue_step;
  // Written by the worker.
  Word joined_generation;
  Word formed_generation;  // the newest one whose exchange it has done
  Word decided_step;       // starts at load_step
  Word served_request;     // newest snapshot_request that a record has honoured
  // Written by the optimizer server.
  Word state_ready;  // 1: master and state are loaded, all working copies of load_step are published
  // Written by the checkpoint service, `restored` last.
  StepStatistics loaded_statistics;  // up to and with load_step; none when that is another run's
  std::uint64_t loaded_updates;      // that the parameters of load_step have seen
  Word restored;                     // 1: master and state of load_step have been written into the segments
  // Compare-and-swap by optimizer server and checkpoint service (rule 20).
  Word snapshot;  // step × 2 + armed; 0: none yet
  // Written by the worker before it stores decided_step. Two slots: a kill in the middle of writing the record of a
  // step leaves the one before it whole, which the next vote still needs.
  DecisionRecord records[2];
  SnapshotStatistics snapshot_statistics[2];
  // Written by the launcher before it stores prepared_change.
  Setting settings[setting_slots];

  /// Where the record of `step` lies: whole for decided_step (all zero when that is the load_step), and for the step
  /// before it until the next one is being written.
  DecisionRecord& record_of(std::uint64_t step) { return records[step % 2]; }
  const DecisionRecord& record_of(std::uint64_t step) const { return records[step % 2]; }
};

/// How far the updates of one state epoch are: its chunks are those of the epoch's placement. In the segment
/// `state.<epoch>`, written by the epoch's optimizer server.
struct EpochWords {
  Word chunks_done;  // step × chunks + k (rule 12); starts at load_step × chunks
};

/// How far a strip of the chunks that are being updated is (tile_machine.h). On a cache line of its own: one thread
/// writes it, tile after tile. In the segment `state.<epoch>`.
struct alignas(64) StripWords {
  Word done;  // tiles_word of the tiles that are done (rule 12)
  Word seal;  // tiles_word of the tile whose redo area is complete + 1; 0: none (rule 13)
};

/// One per service of the cell, written by that service: what `ctl where` and the launcher's watch read.
struct ServiceWords {
  Word progress;   // only grows
  Word operation;  // code of what it does now (plan::OperationKind for a worker)
  Word bucket;
  Word since_ns;  // CLOCK_MONOTONIC when that began
  // What the operation takes, as far as is known, of the clock and of processor time of the whole process; 0: not
  // known, or it waits for others, and nobody is blamed.
  Word planned_ns;
  Word planned_cpu_ns;
};

inline std::uint64_t committed_step(std::uint64_t chunks_done, std::uint64_t chunks) { return chunks_done / chunks; }

/// gradients_ready holds (generation, step) in one word (rule 5).
inline std::uint64_t gradients_ready_word(std::uint64_t generation, std::uint64_t step) {
  return generation << 40 | step;
}

}  // namespace ganymede::step_protocol
