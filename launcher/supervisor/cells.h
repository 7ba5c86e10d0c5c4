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
#include "common/step_protocol/change.h"
#include "launcher/coordinator/rescue.h"
#include "launcher/coordinator/world_layout.h"
#include "launcher/supervisor/segment_memory.h"

namespace ganymede::launcher {

/// The segments of this node's cells, and the launcher's view of their control words. The memory is the keeper's. The
/// launcher is the one writer of generation, stop_request, snapshot_request, prepared_change and the settings.
class Cells {
 public:
  /// Makes every segment of every cell, gives it its memory (segment_memory.h) and writes the words that a run begins
  /// with. Throws Error.
  static Cells create(const config::Config& config, const service::Job& job, coordinator::RankRange ranks,
                      std::uint64_t load_step, const shm::KeeperClient& keeper, const PlacingProgress& progress);
  /// Maps the control segments that a launcher before this one made. Nothing when the segments are not complete: it
  /// died while it made them, before any service ran, or gave them back, after all had ended. Throws Error when they
  /// are not what the configuration, that of the job's first epoch, says.
  static std::optional<Cells> attach(const config::Config& config, const service::Job& job,
                                     coordinator::RankRange ranks, const shm::KeeperClient& keeper);
  /// Gives all segments back.
  static void drop_all(const shm::KeeperClient& keeper);

  int count() const { return static_cast<int>(cells_.size()); }
  const coordinator::RankRange& ranks() const { return ranks_; }
  /// `rank` of the world; one of this node's.
  service::Control& control(int rank) { return cells_.at(static_cast<std::size_t>(rank - ranks_.first)).control; }

  std::uint64_t load_step();
  /// The highest generation that any cell was told or joined.
  std::uint64_t highest_generation();
  void announce_generation(std::uint64_t generation);
  /// All ranks of this node have loaded their state.
  bool all_loaded();
  /// All ranks of this node have met the others in `generation`.
  bool all_formed(std::uint64_t generation);

  void request_stop();
  bool stop_requested();
  /// Orders a checkpoint from all cells and returns the number of the order.
  std::uint64_t request_snapshot();

  /// The world is left: the checkpoint services write this step, see ControlBlock::rescue_step. And not any more.
  void order_rescue(const coordinator::RescueOrder& order);
  void end_rescue();
  std::vector<std::uint64_t> decided_steps();  // of all ranks of this node

  /// Rule 16: the newest setting that lies prepared in the cells. After `attach` it is the same in all of them,
  /// whatever the launcher before this one had reached.
  step_protocol::Setting prepared_change();
  void prepare_change(const step_protocol::Setting& setting);
  /// One that still lies in its slot.
  std::optional<step_protocol::Setting> change(std::uint64_t number);
  /// What the newest step of this node's first rank follows.
  step_protocol::InForce change_in_force() { return step_protocol::in_force(*first().block); }

  /// The state epoch of the newest step of a rank.
  std::uint64_t epoch_in_force(int rank) { return step_protocol::epoch_in_force(*control(rank).block); }
  /// The newest swap that a rank's cell cannot follow; 0: none. And to say so.
  std::uint64_t refused_change(int rank) { return control(rank).block->refused_change.load(std::memory_order_acquire); }
  void refuse_change(int rank, std::uint64_t number) { step_protocol::refuse(*control(rank).block, number); }

  /// The newest step that this node's first rank has decided, and whether the run ends after it.
  std::uint64_t decided_step();
  bool ends_after_decided();
  /// The decision of `step` if it still lies, intact, in the first rank's cell; else null.
  const step_protocol::DecisionRecord* record_of(std::uint64_t step);
  /// Mean loss of `step` if its record still lies in the first rank's cell; NaN otherwise.
  double loss_of(std::uint64_t step);

 private:
  service::Control& first() { return cells_.front().control; }

  struct Cell {
    shm::Segment segment;
    service::Control control;
  };
  coordinator::RankRange ranks_;
  std::vector<Cell> cells_;
};

}  // namespace ganymede::launcher
