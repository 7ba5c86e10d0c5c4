#pragma once

#include <cstdint>
#include <string>

namespace ganymede::os {

struct Memory {
  std::uint64_t total = 0, available = 0;  // bytes; a total of 0: the kernel does not tell
  std::string limit_file;                  // of the control group that sets `available`; empty: the machine does
};

/// Memory of this machine (MemTotal, MemAvailable), both lowered to what NUMA nodes with cores have (a GPU's memory is
/// a node without), and to what the control groups of this process allow. Page cache that a group could give back
/// counts as available. `root`: the folder that proc/ and sys/ lie in. Never throws.
Memory memory_within_limits(const std::string& root = "/");

/// How many processes the kernel has killed for want of memory since the machine began, of a control group or of the
/// machine; 0 where it does not tell. `root`: as above. Never throws.
std::uint64_t out_of_memory_kills(const std::string& root = "/");

}  // namespace ganymede::os
