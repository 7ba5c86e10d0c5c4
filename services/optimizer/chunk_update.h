#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "common/optimizer_abi/ganymede_optimizer.h"
#include "common/placement/placement.h"
#include "common/step_protocol/control_block.h"
#include "services/optimizer/cell_memory.h"
#include "services/optimizer/team.h"

namespace ganymede::optimizer {

/// The plugin's view of a decision record: a record has the hyper-parameters by name, a plugin in its own order.
class StepValues {
 public:
  StepValues() = default;
  /// Throws Error when the record was decided for a plugin with others.
  StepValues(const GanymedeOptimizer& plugin, const step_protocol::DecisionRecord& record);
  /// Points into this object. Its `step` is 0 before one is known.
  GanymedeStep step() const;

 private:
  GanymedeStep step_{};
  std::array<double, step_protocol::most_hyper_parameters> hyper_{};
};

/// The arithmetic of one chunk in its two halves: `compute` reads gradient, master and state and writes the redo area
/// alone; `copy` brings the redo area into master, state and working copy. Both may be done again from the start.
/// Used by one thread, which splits the elements over its team.
class ChunkUpdate {
 public:
  ChunkUpdate(const placement::Placement& placement, const GanymedeOptimizer& plugin, const CellMemory& memory,
              double bias_update_rate, int threads);

  /// Throws Error when the plugin reports that it cannot compute the update.
  void compute(const placement::Chunk& chunk, const step_protocol::DecisionRecord& record);
  /// Throws Error when a new value is not finite and the working copy's format cannot carry it.
  void copy(const placement::Chunk& chunk, std::uint64_t step);

 private:
  bool by_plugin(const placement::Chunk& chunk) const;
  void compute_bias(const placement::Chunk& chunk);
  void publish_chunk_blocks(const placement::Chunk& chunk, std::uint64_t step);
  int compute_part(const placement::Chunk& chunk, const GanymedeStep& step, std::int64_t from, std::int64_t to) const;
  float* redo(std::size_t slot) const;

  const placement::Placement& placement_;
  const GanymedeOptimizer& plugin_;
  const CellMemory& memory_;
  double bias_update_rate_;
  std::vector<int> moe_layer_;  // per parameter: which MoE layer's selection bias it is, or -1
  StepValues values_;           // of the step that is being applied
  Team team_;
};

}  // namespace ganymede::optimizer
