#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace ganymede::os {

/// NUMA nodes that this machine has, those without cores too (the memory of a GPU is one on a GH200).
int memory_nodes();
/// NUMA nodes of these cores, ascending, each once. {0} where the kernel knows no nodes.
std::vector<int> nodes_of_cores(const std::vector<int>& cores);

/// NUMA nodes on which the pages of a shared memory object lie (at most a few thousand of them are asked for),
/// ascending; empty where the kernel does not tell. Throws Error when it cannot be mapped.
std::vector<int> nodes_of_memory(int fd, std::size_t bytes);

/// Told how many more bytes have been touched; called from several threads.
using TouchProgress = std::function<void(std::size_t bytes)>;

/// Gives the mapping [base, base + bytes) its pages now, on `nodes` (bound to one, interleaved over several), touched
/// by threads that run on `cores`. The policy belongs to the memory object, so it also holds for later mappings.
/// `base` lies on a page boundary. Throws Error when the kernel refuses, or has not that much memory: nobody is killed
/// by a fault in a mapping later on. With an empty `nodes` nothing is bound.
void place_memory(void* base, std::size_t bytes, const std::vector<int>& nodes, const std::vector<int>& cores,
                  const TouchProgress& progress);

/// Throws Error that names the first page (one in each 2 MiB is asked for) that does not lie on one of `nodes`.
void verify_placement(const void* base, std::size_t bytes, const std::vector<int>& nodes);

}  // namespace ganymede::os
