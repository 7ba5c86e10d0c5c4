#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "common/config/config.h"
#include "common/os/machine.h"
#include "common/shm/segment.h"

namespace ganymede::launcher {

/// Bytes of the new segments that have their pages so far, of how many.
using PlacingProgress = std::function<void(std::uint64_t done, std::uint64_t all)>;

/// The new segments of one cell.
struct NewCell {
  int local_rank = 0;  // on this node
  std::vector<shm::Segment> segments;
};

/// The NUMA nodes that the segments of each of this node's `cells` are bound to, by local rank: those of its cores.
/// Empty lists on a machine with one node, and without topology.bind_memory.
std::vector<std::vector<int>> nodes_of_cells(const config::Config& config, int cells, const os::Machine& machine);

/// Gives all segments their memory now, each cell's on the NUMA nodes of its cores and touched from these, and checks
/// that it lies there (on a machine with one node, or without topology.bind_memory: only touched). `progress` is called
/// in this thread about twice a second; what it throws ends the placing. Throws Error when the machine has not the
/// memory.
void place_segments(const config::Config& config, const std::vector<NewCell>& cells, const PlacingProgress& progress);

}  // namespace ganymede::launcher
