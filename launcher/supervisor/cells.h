#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/config/config.h"
#include "common/service/run_directory.h"
#include "common/service/service.h"
#include "common/shm/keeper_client.h"
#include "common/shm/segment.h"
#include "launcher/supervisor/segment_memory.h"

namespace ganymede::launcher {

/// The segments of this node's cells, and the launcher's view of their control words. The memory is the keeper's. The
/// launcher is the one writer of generation, stop_request and snapshot_request.
class Cells {
 public:
  /// Makes every segment of every cell, gives it its memory (segment_memory.h) and writes the words that a run begins
  /// with. Throws Error.
  static Cells create(const config::Config& config, const service::Job& job, std::uint64_t load_step,
                      const shm::KeeperClient& keeper, const PlacingProgress& progress);
  /// Maps the control segments that a launcher before this one made. Nothing when the segments are not complete: it
  /// died while it made them, before any service ran, or gave them back, after all had ended. Throws Error when they
  /// are not what the configuration says.
  static std::optional<Cells> attach(const config::Config& config, const service::Job& job,
                                     const shm::KeeperClient& keeper);
  /// Gives all segments back.
  static void drop_all(const shm::KeeperClient& keeper);

  int count() const { return static_cast<int>(cells_.size()); }
  service::Control& control(int rank) { return cells_[static_cast<std::size_t>(rank)].control; }

  std::uint64_t load_step();
  /// The highest generation that any cell was told or joined.
  std::uint64_t highest_generation();
  void announce_generation(std::uint64_t generation);
  /// All ranks have loaded their state.
  bool all_loaded();
  /// All ranks have joined `generation`.
  bool all_joined(std::uint64_t generation);

  void request_stop();
  bool stop_requested();
  /// Orders a checkpoint from all cells and returns the number of the order.
  std::uint64_t request_snapshot();

  /// The newest step that rank 0 has decided, and whether the run ends after it.
  std::uint64_t decided_step();
  bool ends_after_decided();
  /// The decision of `step` if it still lies, intact, in rank 0's cell; else null.
  const step_protocol::DecisionRecord* record_of(std::uint64_t step);
  /// Mean loss of `step` if its record still lies in rank 0's cell; NaN otherwise.
  double loss_of(std::uint64_t step);

 private:
  struct Cell {
    shm::Segment segment;
    service::Control control;
  };
  std::vector<Cell> cells_;
};

}  // namespace ganymede::launcher
