#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <future>
#include <optional>
#include <string>
#include <vector>

#include "common/config/config.h"
#include "common/service/service.h"
#include "common/shm/keeper_client.h"
#include "common/shm/segment.h"
#include "launcher/coordinator/world_layout.h"
#include "launcher/supervisor/epochs.h"

namespace ganymede::launcher {

/// The segments of one state epoch of this node's cells: made and given their memory in a thread of their own, so that
/// whoever serves the run goes on meanwhile. The memory is the keeper's. Used from one thread.
class EpochSegments {
 public:
  /// What is made; all of it is copied.
  struct Plan {
    config::Config config;  // of the epoch
    service::JobEpoch epoch;
    std::uint64_t job = 0;
    coordinator::RankRange ranks;
    shm::KeeperClient keeper;
    std::function<void()> prepare = {};  // done first, in the thread
  };
  /// Begins to make them. Those that a launcher before this one made, all of them, are taken as they are.
  explicit EpochSegments(Plan plan);
  /// Waits for the thread, which gives up.
  ~EpochSegments();
  EpochSegments(const EpochSegments&) = delete;
  EpochSegments& operator=(const EpochSegments&) = delete;

  /// Whether all are there. Throws Error when they could not be made; then nothing of them is left.
  bool made();
  /// Whether the cell's standby server has said that it can follow. False before `made`.
  bool ready(int rank);

  /// Whether the thread, which gives up, has ended.
  bool give_up();

  /// Gives all segments of an epoch of this node back.
  static void drop(const shm::KeeperClient& keeper, std::uint64_t epoch);
  /// The same of all epochs but these: what a launcher has left that died while it gave some back.
  static void drop_all_but(const shm::KeeperClient& keeper, const std::vector<std::uint64_t>& epochs);

 private:
  struct Cell {
    shm::Segment state;
    service::EpochControl control;
  };
  std::vector<Cell> make() const;

  Plan plan_;
  std::atomic<bool> cancelled_ = false;
  std::vector<Cell> cells_;  // once made
  std::future<std::vector<Cell>> making_;
};

}  // namespace ganymede::launcher
