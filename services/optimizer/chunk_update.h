#pragma once

#include <cstdint>
#include <vector>

#include "common/placement/placement.h"
#include "services/optimizer/cell_memory.h"
#include "services/optimizer/step_values.h"
#include "services/optimizer/team.h"

namespace ganymede::optimizer {

/// `state`: of a standby server that follows a step. The parameters are another server's, which may be writing them:
/// they are not read, zeros stand for them, and nothing but the state is written.
enum class Scope : std::uint8_t { all, state };

/// The arithmetic of one chunk in its two halves: `compute` reads gradient, master and state and writes the redo area
/// alone; `copy` brings the redo area into what the chunk's phase updates: master, state and working copy, or state and
/// `matrices_sent`, or master and working copy. Both may be done again from the start.
/// Used by one thread, which splits the elements over its team.
class ChunkUpdate {
 public:
  ChunkUpdate(const placement::Placement& placement, Tables tables, const CellMemory& memory, double bias_update_rate,
              int threads);

  /// In the second phase of matrices what they became has to be there. Throws Error when the plugin reports that it
  /// cannot compute the update.
  void compute(const placement::Chunk& chunk, const step_protocol::DecisionRecord& record, Scope scope = Scope::all);
  /// Throws Error when a new value is not finite and the working copy's format cannot carry it.
  void copy(const placement::Chunk& chunk, std::uint64_t step, Scope scope = Scope::all);
  /// Whether there is anything to do for the chunk: a gap has nothing, a selection bias and the second phase of
  /// matrices no state.
  bool changes(const placement::Chunk& chunk, Scope scope) const;

 private:
  bool by_plugin(const placement::Chunk& chunk) const;
  void compute_bias(const placement::Chunk& chunk);
  void publish_chunk_blocks(const placement::Chunk& chunk, std::uint64_t step);
  const GanymedeOptimizer& table_of(const placement::Chunk& chunk) const;
  GanymedeStep step_of(const placement::Chunk& chunk, const step_protocol::DecisionRecord& record);
  int compute_part(const placement::Chunk& chunk, const GanymedeStep& step, Scope scope, std::int64_t from,
                   std::int64_t to) const;
  float* redo(std::size_t slot) const;

  const placement::Placement& placement_;
  Tables tables_;
  const CellMemory& memory_;
  double bias_update_rate_;
  std::vector<int> moe_layer_;        // per parameter: which MoE layer's selection bias it is, or -1
  std::vector<std::uint64_t> began_;  // per parameter: youngest_began
  std::vector<float> zeros_;          // [chunk_elements]
  std::vector<StepValues> values_;    // of the step that is being applied, by group
  Team team_;
};

}  // namespace ganymede::optimizer
