#pragma once

#include <string>
#include <vector>

#include "launcher/coordinator/node_state.h"
#include "launcher/supervisor/cells.h"
#include "launcher/supervisor/crew.h"

namespace ganymede::launcher {

/// Looks at the cells of this node, their services and what they do now. Uses crew and cells, which outlive it, in
/// their thread.
class CellViewer {
 public:
  CellViewer(const config::Config& config, Cells& cells, Crew& crew);
  /// `lost` is left at 0.
  std::vector<coordinator::CellState> view();

 private:
  Cells& cells_;
  Crew& crew_;
  std::vector<placement::Placement> placements_;
};

/// "rank 0     worker      running     reduce_scatter layer.3 for 5.2 s"
std::string where_line(int rank, const std::string& service, const std::string& state, const std::string& operation,
                       double age_seconds);

/// Appends to logs/where.txt what these cells are at, with the time and the reason why somebody wants to know.
void note_where(const std::string& reason, const std::vector<coordinator::CellState>& cells);

/// Buckets whose gradients of the step in work are ready, in the generation that this cell's worker has joined (rule 5:
/// no other pair counts).
std::size_t ready_gradients(const service::Control& control);

}  // namespace ganymede::launcher
