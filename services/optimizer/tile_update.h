#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "common/placement/placement.h"
#include "services/optimizer/cell_memory.h"
#include "services/optimizer/plugin.h"
#include "services/optimizer/spans.h"
#include "services/optimizer/step_values.h"

namespace ganymede::optimizer {

/// `state`: of a standby server that follows a step. The parameters are another server's, which may be writing them:
/// they are not read, zeros stand for them, and nothing but the state is written.
enum class Scope : std::uint8_t { all, state };

/// One chunk as a strip goes over its tiles: the plugin's call, with pointers to the tile that comes next. Filled by
/// `TileUpdate::enter`; where it lies is where its own pointers point.
struct ChunkCall {
  ChunkCall() = default;
  ChunkCall(const ChunkCall&) = delete;
  ChunkCall& operator=(const ChunkCall&) = delete;

  std::uint64_t chunk = ~std::uint64_t{0};  // none yet
  bool changes = false;                     // there is something to do for it
  bool by_plugin = false, publishes = false;
  int bucket = 0;
  std::size_t slots = 0;    // of state that are written
  std::int64_t from = 0;    // element of the chunk that the pointers point to
  float* master = nullptr;  // that redo(0) goes to: of the master, or of what is sent
  std::array<float*, most_slots> kept{};
  GanymedeStep step{};
  GanymedeChunk call{};
  std::array<const float*, most_slots> state{};
  std::array<float*, most_slots> new_state{};
};

/// The arithmetic of one tile in its two halves: `compute` reads gradient, master and state and writes the redo area
/// alone; `copy` brings the redo area into what the chunk's phase updates: master, state and working copy, or state and
/// `matrices_sent`, or master, working copy and per-row state. Both may be done again from the start.
/// A redo area is [1 + columns][placement::tile_elements]: the master's, then one for each column of state.
/// Thread-safe for different tiles, but for `begin`.
class TileUpdate {
 public:
  TileUpdate(const placement::Placement& placement, Tables tables, const CellMemory& memory, double bias_update_rate);

  /// What the tiles that follow are updated with. Throws Error when the record was decided for other plugins.
  void begin(const step_protocol::DecisionRecord& record, Scope scope);
  /// Whether the chunk's tiles write into the working copy.
  bool publishes(const placement::Chunk& chunk) const {
    return scope_ == Scope::all && chunk.parameter >= 0 && chunk.phase != placement::Phase::state;
  }
  Scope scope() const { return scope_; }
  std::uint64_t step() const { return step_; }  // of the record
  /// Makes `call` the one of the tile, with this redo area. Nothing is to be done for its chunk if it is of a selection
  /// bias or of the second phase of matrices, and state alone is updated.
  void enter(ChunkCall& call, const Tile& tile, float* redo) const;
  /// After `enter` for this tile. In the second phase of matrices what they became has to be there. Returns the
  /// plugin's code: not 0 when it cannot compute the update.
  int compute(ChunkCall& call, const Tile& tile, float* redo) const;
  /// After `enter` for this tile: all but the working copy of a bucket that is published by blocks. The working copy is
  /// visible to other threads after `finish_publishing`.
  void copy(const ChunkCall& call, const Tile& tile, const float* redo) const;
  /// Throws the Error that says which plugin did not compute what.
  [[noreturn]] void fail_of_plugin(const Tile& tile, int code) const;

 private:
  /// What is the same for all steps of a parameter.
  struct Rule {
    const GanymedeOptimizer* table = nullptr;
    std::size_t group = 0;
    int moe_layer = -1;       // whose selection bias it is; -1: updated by the plugin
    bool decayed = false;     // weight decay applies
    std::uint64_t began = 0;  // youngest_began
    std::uint64_t rows = 0, columns = 0;
    std::vector<std::size_t> row_columns{};  // of state, with a value a row
    model_spec::HeadRows heads;
    // In the order of its optimizer's table.
    std::array<const double*, placement::reduction_kinds> reductions{};
    std::array<std::uint32_t, placement::reduction_kinds> reduction_counts{};
  };

  Rule rule_of(int parameter) const;
  void find_reductions(Rule& rule, int parameter) const;
  void begin_chunk(ChunkCall& call, std::uint64_t chunk, float* redo) const;
  int compute_bias(const Tile& tile, float* redo) const;
  void copy_row_values(const Tile& tile) const;
  const placement::Chunk& chunk_of(const Tile& tile) const { return placement_.chunks[tile.chunk]; }

  const placement::Placement& placement_;
  Tables tables_;
  const CellMemory& memory_;
  double bias_update_rate_;
  std::vector<Rule> rules_;         // per parameter
  std::vector<float> zeros_;        // [tile_elements]
  std::vector<StepValues> values_;  // of the step that is being applied, by group
  std::uint64_t step_ = 0;          // of the record
  Scope scope_ = Scope::all;
};

}  // namespace ganymede::optimizer
