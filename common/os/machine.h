#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ganymede::os {

/// What this machine has for us: cores of this process's affinity mask, memory that can be had (MemAvailable,
/// lowered to the cgroup's limit), page size, NUMA nodes that have CPUs.
struct Machine {
  int cores = 1;
  std::uint64_t memory_total = 0, memory_available = 0;  // a total of 0: not known
  std::string memory_limit_file;                         // see Memory
  std::uint64_t page_size = 4096;
  std::vector<int> numa_nodes;
  std::uint64_t open_files_limit = 0, locked_memory_limit = 0;
  bool avx2 = false, avx512 = false, avx512_bf16 = false;
  std::string cpu_name;
};
Machine inspect_machine();

/// Free bytes of the file system that holds `path` (or its nearest existing parent).
std::uint64_t free_disk_bytes(const std::string& path);

/// What this machine calls itself; "an unknown host" when it does not say.
std::string host_name();

/// Resident memory of this process in bytes.
std::uint64_t resident_bytes();

/// Cores of one rank when `ranks` share this node: contiguous, disjoint blocks when there are enough.
std::vector<int> cores_of(int local_rank, int ranks, const Machine& machine);
/// The calling thread, and the threads that it starts from now on, run on these cores alone. Throws Error.
void pin_this_thread(const std::vector<int>& cores);

}  // namespace ganymede::os
