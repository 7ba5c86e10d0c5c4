#pragma once

#include <functional>
#include <string>

#include "launcher/coordinator/node_state.h"
#include "launcher/supervisor/epoch_crew.h"
#include "launcher/supervisor/host_budget.h"

namespace ganymede::launcher {

/// What a node other than 0 does for a swap of the coordinator's. Used in one thread.
class NodeEpoch {
 public:
  struct Parts {
    EpochCrewParts crew;
    std::string programs, run;  // folders
    HostBudget budget;          // of this node
  };
  explicit NodeEpoch(Parts parts);

  /// What it wishes now, once its change stands prepared. Throws Error when job.json cannot be written.
  void obey(const coordinator::NodeWishes& wishes);
  EpochCrew& crew() { return crew_; }

 private:
  void begin(const coordinator::EpochOrder& order);
  void end();

  Parts parts_;
  EpochCrew crew_;
};

}  // namespace ganymede::launcher
