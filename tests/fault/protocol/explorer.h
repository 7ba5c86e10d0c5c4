#pragma once

#include <cstdint>
#include <string>

#include "tests/fault/protocol/model.h"

namespace ganymede::fault {

struct Exploration {
  std::uint64_t states = 0;  // visited, ranks that only differ in their number counted once
  std::uint64_t moves = 0;   // carried out
  std::uint64_t ends = 0;    // different final states
  std::string violation;     // empty: none
  std::string trace;         // the moves that led to it, one a line
};

/// Visits every state that the configuration can reach, depth first, and stops at the first violation.
/// Ends with a violation "more than … states" at the bound.
Exploration explore(const Configuration& configuration, std::uint64_t most_states = 20'000'000);

}  // namespace ganymede::fault
