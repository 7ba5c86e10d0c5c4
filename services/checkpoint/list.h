#pragma once

#include <cstdint>
#include <ctime>
#include <string>
#include <vector>

namespace ganymede::checkpoint {

struct ListedCheckpoint {
  std::uint64_t step = 0, bytes = 0;
  bool complete = false;    // a manifest names it and every part of it is there
  double loss = 0;          // NaN: not known
  std::string damaged;      // why its manifest or a part cannot be used; empty: it can, or there is none yet
  std::time_t written = 0;  // as its manifest says, else the time of that file; 0: there is none
};

/// All checkpoints of a run directory or checkpoint folder, by step; also newer ones that are not complete yet.
/// Throws Error for a folder without checkpoints.
std::vector<ListedCheckpoint> list_checkpoints(const std::string& folder);

}  // namespace ganymede::checkpoint
