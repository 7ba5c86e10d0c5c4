#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ganymede::os {

/// Memory of one NUMA node, in bytes.
struct NodeMemory {
  int node = 0;
  bool has_cores = true;  // without: the memory of a GPU, as on a GH200
  std::uint64_t total = 0;
  std::uint64_t available = 0;  // free, or page cache and kernel caches that can be given back (shared memory cannot)
};

/// NUMA nodes of this machine that have memory and tell how much, ascending; empty where the kernel knows no nodes.
/// `root`: the folder that proc/ and sys/ lie in. Never throws.
std::vector<NodeMemory> memory_of_nodes(const std::string& root = "/");

}  // namespace ganymede::os
