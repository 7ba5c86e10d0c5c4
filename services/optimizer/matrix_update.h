#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "common/cell/handover.h"
#include "common/newton_schulz/orthogonalise.h"
#include "common/placement/placement.h"
#include "services/optimizer/cell_memory.h"
#include "services/optimizer/step_values.h"

namespace ganymede::optimizer {

/// Runs body(0) … body(tasks - 1), several at a time if it likes, and returns when all are done. `body` does not throw.
using RunTasks = std::function<void(std::int64_t tasks, const std::function<void(std::int64_t)>& body)>;

/// Equal matrices, one right behind the other.
struct HandedOver {
  std::int64_t count = 0, rows = 0, cols = 0;
};

/// What the optimizer server does with whole matrices that the worker hands over: update_matrix of the plugin that
/// updates their parameter, with the values of the step that the worker is in. A pure function of what is handed over,
/// the step's record and the age of the state, so it may be done again. Used by one thread, beside that of the update.
class MatrixUpdate {
 public:
  /// References must outlive it. Of the memory it reads control block and `began` alone.
  MatrixUpdate(const placement::Placement& placement, Tables tables, const CellMemory& memory);

  /// `count` matrices [rows, columns] in handover.out, in place; their per-row values from rows_in to rows_out. Throws
  /// Error when the request does not fit the parameters that it names, the record was decided for other plugins, or a
  /// plugin cannot compute the update.
  void run(const shm::Handover& handover, const HandedOver& batch, const RunTasks& run_tasks);

 private:
  void check(const shm::Handover& handover, const HandedOver& batch) const;
  const GanymedeOptimizer& table_of(int parameter) const;
  StepValues values_of(int parameter, std::uint64_t step) const;
  int update(const shm::Handover& handover, const HandedOver& batch, std::int64_t index,
             const StepValues& values) const;

  const placement::Placement& placement_;
  Tables tables_;
  const CellMemory& memory_;
};

/// Orthogonalises a batch; see newton_schulz::orthogonalise.
using Orthogonalise = std::function<std::optional<std::int64_t>(const newton_schulz::Batch&)>;

/// Answers one request of the worker, if there is one that has no answer yet; a successor answers again what its
/// predecessor left. `orthogonalise`, `update`: what may be asked for; empty and null: a request for it is refused.
/// Returns whether there was one. Throws Error for a request that the segment cannot hold.
bool answer_handover(const shm::Handover& handover, const Orthogonalise& orthogonalise, MatrixUpdate* update,
                     const RunTasks& run_tasks);

}  // namespace ganymede::optimizer
