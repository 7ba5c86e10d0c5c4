#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/service/run_directory.h"
#include "services/worker/engine/job/epoch_engine.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/engine/test_cell.h"
#include "tests/unit/engine/thread_communicator.h"

namespace ganymede::worker {

/// A cell with the segments of several state epochs.
class SwapCell final : public TestCell {
 public:
  SwapCell(const std::vector<config::Config>& epochs, const service::Job& job, int rank);
  const config::Config& config_of(std::uint64_t epoch) override { return configs_.at(epoch); }
  const placement::Placement& placement_of(std::uint64_t epoch) override { return placements_.at(epoch); }
  std::uint64_t optimizer_hash_of(std::uint64_t epoch) override { return hashes_.at(epoch); }
  /// Of a server whose end is asked for: not for longer.
  bool wait(const step_protocol::Word& word, const std::function<bool(std::uint64_t)>& ready,
            const std::function<bool()>& give_up, Deadline deadline, const char* what) override;
  std::uint64_t committed(std::uint64_t epoch);

 private:
  std::vector<config::Config> configs_;
  std::vector<placement::Placement> placements_;
  std::vector<std::uint64_t> hashes_;
};

/// An optimizer server of a state epoch in a thread; its end is a kill between two of its actions.
class SwapServer {
 public:
  SwapServer(SwapCell& cell, std::uint64_t epoch);
  /// Expects that it had no fault.
  ~SwapServer();

 private:
  std::atomic<bool> end_{false};
  std::string fault_;
  std::thread thread_;
};

/// Two ranks that train with the first of some optimizers (state epoch 0) and may go over to the second (1) and the
/// third (2): workers and optimizer servers as threads, with the epochs' job in the current folder.
class SwapWorld {
 public:
  static constexpr int ranks = 2;
  /// `tune` may change the configuration of each epoch.
  explicit SwapWorld(
      const std::vector<std::string>& optimizers = {"adamw", "muon", "adamw"},
      const std::function<void(config::Config&)>& tune = [](config::Config&) {});
  ~SwapWorld();

  /// Starts the standby servers of the epoch and prepares its setting, as the launchers do.
  void swap_to(std::uint64_t epoch, std::uint64_t warm_steps);
  /// Trains the next step on all ranks. Where a generation ends in it, in the next one; perhaps of the step after it.
  void step();
  /// The workers of all ranks end wherever they are, soon, in another thread.
  void kill_workers_in(std::chrono::microseconds time);
  /// Ends the server of a rank and starts its successor.
  void restart_server(int rank, std::uint64_t epoch);
  /// Waits until all ranks have committed what is decided.
  void settle();

  std::uint64_t decided() { return cells_[0]->control().block->decided_step.load(); }
  const step_protocol::DecisionRecord& record() { return cells_[0]->control().block->record_of(decided()); }
  /// Master and state of the epoch in force, of all ranks.
  std::vector<std::vector<float>> values();
  std::vector<float> master(int rank);
  SwapCell& cell(int rank) { return *cells_[rank]; }

 private:
  class Source;
  struct Worker {
    std::unique_ptr<Source> source;
    std::unique_ptr<AttemptEnd> end;
    std::unique_ptr<EpochEngine> engine;
  };
  void form();
  /// On all ranks at a time; what they throw, in their order.

  test::TemporaryFolder folder_;
  std::filesystem::path before_;
  service::Job job_;
  std::vector<config::Config> configs_;
  std::array<std::unique_ptr<SwapCell>, ranks> cells_;
  std::array<std::array<std::unique_ptr<SwapServer>, 3>, ranks> servers_;  // by epoch
  std::shared_ptr<ThreadPost> post_;
  std::array<Worker, ranks> workers_;
  std::uint64_t generation_ = 0, next_ = 0, changes_ = 0;
  std::thread killer_;
};

}  // namespace ganymede::worker
