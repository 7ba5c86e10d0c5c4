#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/support/kills/watched_cell.h"

namespace ganymede::test {

/// A moment in the life of a service at which it is killed.
struct KillTarget {
  service::Kind kind = service::Kind::worker;
  std::string name;                               // "gather layer.1.experts"
  std::function<bool(const WatchedCell&)> holds;  // whether the service is there
  bool first_rank_alone = false;                  // other ranks never are
  bool while_starting = false;                    // only a process that has just been started is there
};

/// Every kind of operation of the worker's step plan in this cell, each in the first, the middle and the last bucket
/// of its own; and the exchange of a generation. Without what does nothing here (release, or a gather in place).
std::vector<KillTarget> worker_targets(const WatchedCell& cell);
/// Both phases of an update in the first, the middle and the last bucket, and the waits for decision and matrices.
std::vector<KillTarget> optimizer_targets(const WatchedCell& cell);
/// Filling and waiting, for the first, the middle and the last batch slot; and opening the dataset.
std::vector<KillTarget> data_targets(const WatchedCell& cell);
/// The beginning, middle and end of reading a snapshot, writing, committing, idle.
std::vector<KillTarget> checkpoint_targets(const WatchedCell& cell);
/// All of them.
std::vector<KillTarget> all_targets(const WatchedCell& cell);

}  // namespace ganymede::test
