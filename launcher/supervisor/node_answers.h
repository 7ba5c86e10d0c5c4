#pragma once

#include <string>

#include "common/msg/message.h"
#include "launcher/supervisor/node_supervisor.h"
#include "launcher/supervisor/supervisor.h"

/// Who answers what in a run over several nodes.
namespace ganymede::launcher {

/// Whether the launcher of a node passes this request of its services or of a person on to the coordinator: all that
/// concerns the whole world. What concerns one process (registration, heartbeats, faults), and parts of checkpoints,
/// which are told as state, stays on its node.
bool is_for_coordinator(const msg::Message& request);

/// The answer of a node other than 0 to one of its own services. Throws Error for what is refused.
msg::Message answer(NodeSupervisor& supervisor, const msg::Message& request);

/// What a coordinator tells a node that takes part.
struct WelcomeParts {
  std::string own_configuration;  // as given, to be the same on all nodes
  std::string configuration;      // the effective one
  std::string checkpoints;        // token in the checkpoint folder
  std::string dataset;            // hash of its content
  std::uint64_t load_step = 0;
};

/// The coordinator's answer to what comes from other nodes. Throws Error for what is refused.
msg::Message answer_node(Supervisor& supervisor, const WelcomeParts& parts, const std::string& identity,
                         const msg::Message& request);

/// The first line that differs from that of node 0, with its section: "[run] steps = 50 on node 0, steps = 60 on node
/// 1"; empty when none does. Both nodes show it.
std::string first_difference(const std::string& of_node_0, int node, const std::string& of_node);

}  // namespace ganymede::launcher
