#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/os/memory_holders.h"
#include "common/os/node_memory.h"

namespace ganymede::launcher {

/// What the cells of one node need of its memory, against what there is.
struct HostBudget {
  struct Row {
    std::string what;  // "master", "worker process", …
    std::uint64_t bytes_per_cell = 0;
  };
  int cells = 1;
  std::vector<Row> rows;
  std::uint64_t available = 0;  // bytes that this node can give
  bool limited = false;         // `available` is launch.host_memory_limit_gib, not what the machine has free
  bool known = true;            // else the kernel does not tell what is available
  std::string limit_file;       // of the control group that sets `available`; empty: the machine does

  struct Node {               // NUMA, with cores
    int node = 0, cells = 0;  // cells: whose segments are bound to it
    std::uint64_t needed = 0, available = 0;
  };
  std::vector<Node> nodes;  // of a machine with several

  std::uint64_t needed_per_cell() const;
  std::uint64_t needed() const { return needed_per_cell() * static_cast<std::uint64_t>(cells); }
};

/// "host memory: 546 MiB needed by 2 cells, 22.1 GiB available".
std::string summary(const HostBudget& budget);

/// Says which of the NUMA nodes have to hold the cells: `nodes_of_cells[i]` are those that the memory of cell i is
/// bound to, in equal parts; empty: it may lie on any.
void place_on_nodes(HostBudget& budget, const std::vector<std::vector<int>>& nodes_of_cells,
                    const std::vector<os::NodeMemory>& nodes);

/// Whether so much is needed that a person should see for what: four fifths of what is available here, or on one of the
/// NUMA nodes, or more.
bool tight(const HostBudget& budget);

/// Aligned lines: a head, one a row, the sum, what is available, and the same of each NUMA node that cells are bound
/// to.
std::vector<std::string> table_lines(const HostBudget& budget);
/// The same as one text. Ends without a newline.
std::string table(const HostBudget& budget);

/// Those that hold memory now, largest first; asked only to say so.
using Holders = std::function<std::vector<os::MemoryHolder>()>;

/// Throws Error when it does not fit into what is available, or into a NUMA node, with the numbers, the two largest
/// parts, what each node has free, who holds the rest, and what to change. What is not known is not held against.
void require_fit(const HostBudget& budget, const Holders& holders);

/// The same of what a swap to another optimizer needs beside a run that goes on: a sentence, or "" when it fits.
std::string why_no_swap_fits(const HostBudget& budget, const Holders& holders);

}  // namespace ganymede::launcher
