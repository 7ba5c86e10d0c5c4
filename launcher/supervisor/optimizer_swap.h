#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launcher/supervisor/changes.h"
#include "launcher/supervisor/crew.h"
#include "launcher/supervisor/epoch_segments.h"
#include "launcher/supervisor/epochs.h"
#include "launcher/supervisor/host_budget.h"

namespace ganymede::launcher {

/// What a person wants, made ready by `ganymede ctl`.
struct SwapOrder {
  std::string configuration;                // effective, with the new optimizer
  std::vector<service::JobPlugin> plugins;  // its own, in the run directory, in the order of config::optimizers_of
  std::uint64_t warm_steps = 0;
  bool dry_run = false;
};

enum class SwapState { none, preparing, warming, in_force, refused };

/// What a person may know of a swap.
struct SwapReport {
  std::uint64_t epoch = 0;
  SwapState state = SwapState::none;
  std::string before, after;  // optimizers
  std::uint64_t change = 0;
  std::uint64_t from_step = 0;  // that it applies first; while it is not in force, that it may; 0: not known any more
  std::uint64_t warm_steps = 0, warmed = 0;  // updates that it follows, and has followed
  int rank = -1;                             // that refused; -1: none of them
  std::string reason;                        // of a refusal
  int cells = 0;                             // of this node
  std::uint64_t needed_per_cell = 0, available = 0;  // bytes of host memory
  /// "adamw → muon, 12 of 100 updates followed"
  std::string describe() const;
};

/// What a swap works with; all of it outlives it.
struct SwapParts {
  const service::Job& job;
  Cells& cells;
  Crew& crew;
  Changes& changes;
  Epochs& epochs;
  Terminal& terminal;
  HostBudget budget;        // of the run
  std::uint64_t steps = 0;  // of the run
  shm::KeeperClient keeper = shm::KeeperClient();
};

/// Takes a running job to another optimizer, one swap at a time (design: services/optimizer/README.md,
/// common/step_protocol/swap.h): lists the epoch, makes its segments, starts a standby server in each cell, offers the
/// change when all of them can follow, makes the standby the cell's server once its record names the epoch, and gives
/// back what the epoch before had. When a cell cannot, it takes all of it back. A launcher that comes after this one
/// goes on from job.json and the control words. Used in one thread.
class OptimizerSwap {
 public:
  explicit OptimizerSwap(SwapParts parts);

  /// Begins a swap, or, for a dry run, says what it would take. Throws Error(usage) for a configuration that cannot be,
  /// Error when one is under way, when a change is, and when the host memory is not there.
  SwapReport order(const SwapOrder& order);
  /// Of a swap of this launcher's life. Throws Error.
  SwapReport report(std::uint64_t epoch);
  /// Nothing when none is under way.
  std::optional<SwapReport> under_way();
  /// Throws Error when one is.
  void require_none();

  /// Called several times a second.
  void watch(double now);
  /// Looks at the records at once, and whether the process that ended was one of a swap: then it is dealt with.
  bool ended(ServiceProcess& process, const os::Ending& ending);
  /// Whether the fault that a process reports is a standby's, and so costs the swap alone.
  bool fault(int pid, const std::string& text);

  /// By how much the segments of this node have grown since the run began.
  double grown_bytes() const { return grown_; }

 private:
  enum class Stage { idle, placing, starting, offered, leaving, dropping };

  void resume();
  void begin(const config::Config& config, const SwapOrder& order);
  void place();
  void start_standbys(double now);
  void offer(double now);
  void follow_records();
  void promote();
  void settle();
  void refuse(int rank, const std::string& reason);
  void finish_refusal();
  void standby_ended(ServiceProcess& process, const os::Ending& ending);
  std::string words_of(const ServiceProcess& process, const os::Ending& ending);
  void say(const std::string& line);
  bool all_cells(bool (OptimizerSwap::*holds)(int rank));
  bool is_ready(int rank) { return segments_->ready(rank); }
  bool has_taken_over(int rank) { return parts_.cells.epoch_in_force(rank) == current_.epoch; }

  SwapParts parts_;
  Stage stage_ = Stage::idle;
  SwapReport current_;
  std::map<std::uint64_t, SwapReport> done_;  // by epoch
  std::unique_ptr<EpochSegments> segments_;
  bool offered_before_ = false;  // by the launcher before this one
  double deadline_ = 0;          // seconds; for all standbys to be ready
  std::map<int, int> deaths_;    // of standbys, by rank
  std::map<int, std::string> words_;  // last ones of standbys, by rank
  double grown_ = 0;
};

}  // namespace ganymede::launcher
