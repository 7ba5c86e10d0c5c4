#pragma once

#include <array>
#include <vector>

#include "common/optimizer_abi/ganymede_optimizer.h"
#include "common/placement/update_groups.h"
#include "common/step_protocol/control_block.h"

namespace ganymede::optimizer {

/// Tables of the run's plugins, in the order of placement::UpdateGroups::optimizers. They live as long as the program.
using Tables = std::vector<const GanymedeOptimizer*>;

/// A plugin's view of a decision record for one group of parameters: a record has the hyper-parameters of all plugins
/// by name, a plugin its own in its own order.
class StepValues {
 public:
  StepValues() = default;
  /// Throws Error when the record was decided for other plugins or groups.
  StepValues(const Tables& tables, const placement::UpdateGroups& update, std::size_t group,
             const step_protocol::DecisionRecord& record);
  /// Points into this object. Its `step` is `updates` of the record; 0 before one is known.
  GanymedeStep step() const;

 private:
  GanymedeStep step_{};
  std::array<double, step_protocol::most_hyper_parameters> hyper_{};
};

}  // namespace ganymede::optimizer
