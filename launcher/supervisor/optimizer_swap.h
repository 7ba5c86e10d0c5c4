#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "launcher/supervisor/changes.h"
#include "launcher/supervisor/crew.h"
#include "launcher/supervisor/epoch_crew.h"
#include "launcher/supervisor/epochs.h"
#include "launcher/supervisor/host_budget.h"

namespace ganymede::launcher {

/// What a person wants, made ready by `ganymede ctl`.
struct SwapOrder {
  std::string configuration;                // effective, with the new optimizer
  std::vector<service::JobPlugin> plugins;  // its own, in the run directory, in the order of config::optimizers_of
  std::uint64_t warm_steps = 0;
  bool dry_run = false;
  std::uint64_t base = 0;  // hash of the effective configuration that it was made from
  std::string from = {};   // who asks, and asks again when the answer was lost; empty: not known
};

enum class SwapState { none, preparing, warming, in_force, refused };

/// What a person may know of a swap.
struct SwapReport {
  std::uint64_t epoch = 0;
  SwapState state = SwapState::none;
  std::string before, after;  // optimizers
  std::uint64_t change = 0;
  std::uint64_t from_step = 0;  // that it applies first; while it is not in force, that it may; 0: not known any more
  std::uint64_t warm_steps = 0, warmed = 0;          // updates that it follows, and has followed
  int rank = -1;                                     // that refused; -1: none of them
  std::string reason;                                // of a refusal
  int cells = 0;                                     // of this node
  std::uint64_t needed_per_cell = 0, available = 0;  // bytes of host memory
  /// "adamw → muon, 12 of 100 updates followed"
  std::string describe() const;
};

/// What the other nodes of the run say of the epoch, by node; nothing: a node has none, or has not said anything yet.
using OtherNodes = std::function<std::vector<std::optional<coordinator::EpochProgress>>()>;

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
  OtherNodes others = {};   // none: a run on one node
  shm::KeeperClient keeper = shm::KeeperClient();
  std::function<os::Machine()> machine = os::inspect_machine;
};

/// Takes a running job to another optimizer, one swap at a time (common/step_protocol/swap.h): lists the epoch, has
/// every node make its segments and start its standby servers, offers the change when all of them can follow, and has
/// what the epoch before had given back when all cells of the world are past it. When a cell cannot follow, all of it
/// is taken back. A launcher that comes after this one goes on from job.json and the control words. The coordinator's;
/// used in one thread.
class OptimizerSwap {
 public:
  explicit OptimizerSwap(SwapParts parts);

  /// Begins a swap, or, for a dry run, says what it would take. The same order of the same asker is one. Refused
  /// without an epoch: the swap before is still being taken back, ask again. Throws Error(usage) for a configuration
  /// that cannot be, Error when one is under way, when a change is, and when the host memory is not there; then the
  /// copies of its plugins that nobody else needs are gone.
  SwapReport order(const SwapOrder& order);
  /// Of a swap of this launcher's life. Throws Error.
  SwapReport report(std::uint64_t epoch);
  /// Nothing when none is under way.
  std::optional<SwapReport> under_way();
  /// Throws Error when one is.
  void require_none();
  /// What the other nodes have to do for it; nothing when none is under way.
  std::optional<coordinator::EpochOrder> wish() const;

  /// Called several times a second.
  void watch(double now);
  EpochCrew& crew() { return crew_; }

 private:
  enum class Stage { idle, preparing, warming, dropping };

  void resume();
  bool takes_back() const;
  SwapReport take(const SwapOrder& order);
  void begin(const SwapOrder& order);
  SwapReport judge(const config::Config& config, const SwapOrder& order);
  void prepare();
  void follow_records();
  void refuse(int rank, const std::string& reason);
  void finish_refusal();
  void finish();
  std::optional<EpochCrew::Refusal> refusal_elsewhere() const;
  bool all_nodes(coordinator::EpochStage stage) const;

  SwapParts parts_;
  EpochCrew crew_;
  Stage stage_ = Stage::idle;
  SwapReport current_;
  SwapOrder ordered_;                         // the last one
  std::map<std::uint64_t, SwapReport> done_;  // by epoch
};

}  // namespace ganymede::launcher
