#pragma once

#include <string>
#include <vector>

#include "launcher/coordinator/node_state.h"

namespace ganymede::launcher {

/// A line for each service that another node has started again between two of its reports: "node 1 (beta): worker of
/// rank 1 is started again (restart 2)", `name` first. A launcher that was replaced counts from 0 again.
std::vector<std::string> restarts_since(const coordinator::NodeState& before, const coordinator::NodeState& now,
                                        const std::string& name);

/// A line for each service of another node that does not run the binary which was ordered for it, once.
std::vector<std::string> refusals_since(const coordinator::NodeState& before, const coordinator::NodeState& now,
                                        const std::string& name);

}  // namespace ganymede::launcher
