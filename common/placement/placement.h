#pragma once

#include "common/config/config.h"
#include "common/model_spec/model_spec.h"
#include "common/placement/reductions.h"
#include "common/placement/update_groups.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

/// Who owns which elements of which parameter, and where they lie. A pure function of the configuration, computed
/// alike by every service.
///
/// The world is `replicas` copies of the model, each shared by a shard group of consecutive ranks:
/// rank = replica · shard_group + index in the shard group. Expert groups are consecutive ranks of a shard group.
/// Ranks with the same index share the same range of each bucket; they are a replica group. Each of them holds all of
/// it, or with replicas.state = sharded its slice: that is its shard.
///
/// A bucket is one flat array of elements: its parameters one after another, each starting at a multiple of
/// `alignment` elements (the gap is zero and stays zero); only an expert's up projection follows its gate projection
/// without a gap, for they are multiplied as one. The ranks that share the bucket cut the flat array into one
/// contiguous range each, at row boundaries of parameters (elements of a vector count as rows) or at coarser ones
/// (`CutUnit`), so a gather lands every parameter whole and in place, without a copy. Ranges may differ in length, and
/// may be empty.
/// Dense buckets are cut over the whole shard group. An experts bucket of a rank holds the experts of its place in the
/// expert group (expert_range.h; places may differ by one), cut over the ranks of the shard group with the same place.
namespace ganymede::placement {

constexpr std::int64_t alignment = 16;  // elements; 64 bytes of fp32
inline std::int64_t aligned(std::int64_t elements) { return (elements + alignment - 1) / alignment * alignment; }

/// What a cut of a bucket leaves whole. An optimizer that needs whole matrices has them with the first two; with
/// `rows` a matrix may lie on several ranks, and they have to exchange it.
enum class CutUnit : std::uint8_t { experts, matrices, rows };

struct PlacedParameter {
  int parameter = 0;        // index in model_spec::parameters
  std::int64_t offset = 0;  // first element in the bucket's flat array
};

struct Bucket {
  std::string name;  // "embed", "layer.7.dense", "layer.7.experts", "head"
  model_spec::BucketKind kind{};
  int layer = -1;
  std::vector<PlacedParameter> parameters;  // in flat order
  std::int64_t elements = 0;                // of the flat array, gaps included
  std::vector<int> group;                   // world ranks of this replica that share this bucket, ascending
  int index_in_group = 0;                   // of the rank that this Placement is for
  CutUnit unit = CutUnit::rows;
  std::vector<std::int64_t> cut;    // group.size() + 1 boundaries; member i owns [cut[i], cut[i+1])
  std::vector<std::int64_t> slice;  // replicas + 1 row boundaries in the flat array; replica r answers for
                                    // [slice[r], slice[r+1]) of this rank's range
  int slice_held = -1;              // the only slice that this rank holds (replicas.state = sharded); -1: it holds all
  std::int64_t shard_offset = 0;    // first element of its shard in its master, gradient, … arrays

  /// This rank's range, as the members of the group share the bucket.
  std::int64_t range_begin() const { return cut[index_in_group]; }
  std::int64_t range_elements() const { return cut[index_in_group + 1] - cut[index_in_group]; }
  /// What this rank holds and updates: its range, or its slice of it.
  std::int64_t shard_begin() const { return slice_held < 0 ? range_begin() : slice[slice_held]; }
  std::int64_t shard_elements() const {
    return slice_held < 0 ? range_elements() : slice[slice_held + 1] - slice[slice_held];
  }
  /// Whether this rank holds the bucket whole, by how the world is made: the same for all of a replica group.
  bool whole() const { return group.size() == 1 && slice_held < 0; }
};

constexpr std::size_t most_columns = 16;

/// Part of one parameter that this rank holds and updates.
struct OwnedRange {
  int parameter = 0;
  int bucket = 0;
  std::int64_t first = 0;  // element within the parameter
  std::int64_t count = 0;
  std::int64_t shard_offset = 0;  // element within this rank's master array
  int replica = 0;                // that answers for it: counts it in the norm and writes it to checkpoints
  /// Element within each column of state; of those that the parameter's optimizer has.
  std::array<std::int64_t, most_columns> state_offset{};
  std::int64_t matrix_offset = 0;  // element within this rank's parts of matrices, if its optimizer is one of them
  /// Element within the same: values of the per-row slots of its rows, [rows][slots per row], behind all of the
  /// parameter's rows of this rank.
  std::int64_t row_values_offset = 0;
};

/// Consecutive elements of a column of state.
struct StateRun {
  std::int64_t offset = 0, count = 0;
};

/// Consecutive rows of a parameter.
struct ParameterRows {
  std::int64_t first = 0, count = 0;
};

/// What is updated of a chunk at once. An optimizer of matrices has two phases, because what other ranks hold of a
/// matrix is needed between them (rule 14): first the state, from which what is orthogonalised is made; then, for all
/// chunks after all first phases, the master.
enum class Phase : std::uint8_t { whole, state, master };

/// The unit of counting, snapshots and checkpoints: a run of elements of one bucket under one update rule.
struct Chunk {
  int bucket = 0;
  int parameter = 0;       // the parameter it lies in; -1 for a gap
  std::int64_t first = 0;  // element within the parameter
  std::int64_t shard_offset = 0;
  std::int64_t count = 0;  // ≤ chunk_elements
  int replica = 0;         // as in OwnedRange
  int owned = -1;          // index into Placement::owned; -1 for a gap
  Phase phase = Phase::whole;
};

constexpr std::int64_t chunk_elements = 16 * 1024;  // 64 KiB of fp32 a slot
/// The unit of the optimizer's redo, a part of a chunk: 2 KiB of fp32 a slot, so that old and new values of a tile, and
/// what is prefetched of the next one, stay in a first cache of 32 KiB.
constexpr std::int64_t tile_elements = 512;
constexpr int strips_of_a_thread = 4;  // a thread that is held up holds up one of them

struct Placement {
  int rank = 0, world = 1, expert_group = 1;
  int shard_group = 1, replicas = 1;                  // world = replicas · shard_group
  int replica = 0, shard_index = 0;                   // rank = replica · shard_group + shard_index
  int expert_place = 0;                               // this rank's place in its expert group
  int first_expert = 0, local_experts = 0;            // experts of this place
  std::vector<int> shard_ranks;                       // world ranks of this rank's replica, ascending
  bool sharded_state = false;                         // each replica holds its slice only
  std::vector<int> replica_ranks;                     // world ranks of this rank's replica group, by replica
  std::vector<int> expert_ranks;                      // world ranks of this rank's expert group, by place
  std::vector<model_spec::ParameterSpec> parameters;  // of the whole model
  std::vector<Bucket> buckets;                        // in forward order
  std::vector<OwnedRange> owned;                      // in shard order
  UpdateGroups update;                                // which optimizer updates which parameter
  /// In update order: the first phases of all matrices, then all else, each with buckets in forward order. Never none:
  /// one of no elements if need be.
  std::vector<Chunk> chunks;
  int strips = strips_of_a_thread;  // that the optimizer server updates at once, each with a redo area of its own
  std::int64_t shard_elements = 0;  // of this rank's master array, all buckets, aligned; at least `alignment`
  /// Elements of each column of state: column i holds the i-th slot of whichever optimizer updates an element, for
  /// those that have so many.
  std::vector<std::int64_t> columns;
  std::int64_t matrix_elements = 0;  // that optimizers of matrices update, and values of their per-row slots
  Reductions reductions;             // what the optimizers ask to know of each step

  /// Index of the bucket with this name; ends the process if there is none.
  int bucket(const std::string& name) const;
  /// Rows that begin in `count` elements of a parameter: of the parts that a parameter is cut into, each row is in one.
  ParameterRows rows_in(int parameter, std::int64_t first, std::int64_t count) const;
  /// What a column of state has of elements of an owned range, from element `first` of the parameter on: as many, or
  /// one for each row that begins there. What a column is, the parameter's optimizer says.
  StateRun state_run(const OwnedRange& range, std::int64_t first, std::int64_t count, std::size_t column) const;
  StateRun state_run(const OwnedRange& range, std::size_t column) const {
    return state_run(range, range.first, range.count, column);
  }
  StateRun state_run(const Chunk& chunk, std::size_t column) const {
    return state_run(owned[static_cast<std::size_t>(chunk.owned)], chunk.first, chunk.count, column);
  }
  /// Where a chunk's elements lie in this rank's parts of matrices.
  std::int64_t matrix_offset(const Chunk& chunk) const {
    const OwnedRange& range = owned[static_cast<std::size_t>(chunk.owned)];
    return range.matrix_offset + chunk.first - range.first;
  }
  /// Slots of the optimizer that updates the parameter.
  std::size_t slots_of(int parameter) const { return update.optimizer_of(parameter).slots.size(); }
  /// Whether the parameter has one value a row in this column.
  bool per_row(int parameter, std::size_t column) const { return update.optimizer_of(parameter).per_row(column); }
};

/// Rank r has place r % expert_group. Throws Error(usage) when the world cannot hold the model: a shard group that is
/// no multiple of the expert group, ranks no multiple of the replicas, fewer experts than ranks of an expert group.
///
/// All experts buckets have one unit: whole experts when every rank of a place gets as many; else whole matrices when
/// all ranks then hold the same bytes over the whole model, within 5%; else rows. Places that differ: README.md.
/// `optimizers`: what the run's plugins say of themselves, see update_groups.h. Optimizers of matrices do not go with
/// replicas.state = sharded.
Placement build(const config::Config& config, int rank, const std::vector<OptimizerFacts>& optimizers = {});

/// Throws Error(usage) for replicas.state = sharded with an optimizer of matrices, before anything is laid out.
void check_replicas(const config::Config& config, const std::vector<OptimizerFacts>& optimizers);

/// Range of rows of a step that a rank computes: rows_per_step / world consecutive rows, in rank order.
struct RowRange {
  int first = 0, count = 0;
};
RowRange rows_of(const config::Config& config, int rank);

}  // namespace ganymede::placement
