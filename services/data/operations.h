#pragma once

#include <cstdint>

namespace ganymede::data {

/// Codes that the data server writes into its ServiceWords.
enum Operation : std::uint64_t { opening = 0, filling = 1, waiting = 2 };

}  // namespace ganymede::data
