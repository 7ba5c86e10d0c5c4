#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ganymede::os {

/// What keeps memory from others: a process, or a file in a file system that lies in memory (tmpfs).
struct MemoryHolder {
  int pid = 0;               // 0: a file
  std::string name;          // of the process, as the kernel keeps it (15 characters), or the file's path; one line
  std::uint64_t bytes = 0;   // resident; of a process without what is mapped from files, which can be given back
  std::uint64_t shared = 0;  // bytes of these in shared memory, which other holders may count as well
};

/// "python3 (process 12) 3 GiB, 1 GiB of it shared", "/dev/shm/left 2 GiB".
std::string describe(const MemoryHolder& holder);

/// The `count` largest, largest first; what cannot be read is left out. `root`: the folder that proc/ and the mounted
/// file systems lie in. Reads a few files a process and up to some ten thousand names: for rare use. Never throws.
std::vector<MemoryHolder> largest_memory_holders(std::size_t count, const std::string& root = "/");

}  // namespace ganymede::os
