#pragma once

#include <memory>
#include <string>

#include "common/collectives/collectives.h"
#include "common/collectives/shm/port.h"

namespace ganymede::collectives {

/// `collectives.backend`. automatic: `shm` inside a node where memory is published, gloo elsewhere.
enum class Backend { automatic, shm, gloo };

/// What all communicators of a process have in common.
struct Surroundings {
  Backend backend = Backend::automatic;
  int ranks_per_node = 0;                 // node of a rank = rank / ranks_per_node; 0: all ranks are on one node
  Port* port = nullptr;                   // this rank's published memory; none: no shm. Must outlive the communicators
  std::shared_ptr<Store> store;           // of the generation
  std::string interface = "lo";           // network interface for gloo
  std::size_t scratch_bytes = 16u << 20;  // of a communicator, for what is received before it is summed
};

/// The one place that chooses a backend. Fills in `group.nodes`, and blocks until all members have come, at most the
/// group's timeout. Throws CollectiveError naming the group; Error when `shm` is wanted and the group spans several
/// nodes or nothing is published.
std::unique_ptr<Communicator> make_communicator(Group group, const Surroundings& surroundings);

}  // namespace ganymede::collectives
