#pragma once

#include <cstdint>

namespace ganymede::os {

struct Memory {
  std::uint64_t total = 0, available = 0;  // bytes
};

/// Memory of this machine (MemTotal, MemAvailable), both lowered to what the control groups of this process allow.
/// Page cache that a group could give back counts as available.
Memory memory_within_limits();

}  // namespace ganymede::os
