#pragma once

#include <cstdint>

namespace ganymede::checkpoint {

/// Codes that the checkpoint service writes into its ServiceWords.
enum class Activity : std::uint64_t { idle, restoring, reading, writing, committing };

}  // namespace ganymede::checkpoint
