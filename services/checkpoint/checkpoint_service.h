#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/service/run_directory.h"
#include "common/service/service.h"
#include "services/checkpoint/activity.h"
#include "services/checkpoint/live_cell.h"
#include "services/checkpoint/part_store.h"
#include "services/checkpoint/reports.h"

namespace ganymede::checkpoint {

/// The checkpoint service of one rank. One thread calls it. Relative to the run directory.
class CheckpointService {
 public:
  struct Settings {
    std::string checkpoints = service::checkpoint_folder;
    std::string load_from;     // folder that holds load_step; empty: `checkpoints`
    std::string dataset = {};  // hash of its content, for manifests
    /// Of a state epoch, for manifests.
    std::function<std::vector<service::ManifestOptimizer>(std::uint64_t epoch)> optimizers_of = [](std::uint64_t) {
      return std::vector<service::ManifestOptimizer>();
    };
    std::int64_t value_elements = checkpoint::value_elements;  // most elements of one value
    Reached reached = [](std::string_view) {};
  };

  CheckpointService(service::Context& context, Reports& reports, Settings settings);

  /// Until the service must finish. Throws Error for what training cannot go on with (a damaged checkpoint to start
  /// from); a snapshot that fails is reported and given up.
  void run();

  /// The parts of `run`, for tests.
  void restore_if_asked();
  void recover();
  /// Looks at the snapshot word, at what waits for the other ranks and whether the world is being left once. True when
  /// it did something.
  bool serve();

 private:
  /// A durable part whose manifest is not committed yet; rank 0 alone waits for it.
  struct Pending {
    std::uint64_t step = 0, bytes = 0;
    std::string hash, config;
    std::vector<service::ManifestOptimizer> optimizers;
    Clock::time_point began;
  };

  LiveCell live_cell();
  void follow_epoch();
  bool try_to_recover();
  bool await_snapshot(double seconds);
  bool decided_last(std::uint64_t step) const;
  void take(std::uint64_t step);
  std::optional<PartRecord> write_part(std::uint64_t step, int replica, PartStore& to);
  void publish(std::uint64_t step, const PartRecord& record, Clock::time_point began);
  bool try_commit();
  bool rescue_is_due() const;
  bool rescue();
  bool arm_for_rescue(std::uint64_t step);
  void save_for_rescue(std::uint64_t step);
  PartRecord part_for_rescue(std::uint64_t step, int replica, PartStore& to);
  void tidy();
  void give_up(std::uint64_t step, const std::string& text);
  PartStore& store();
  void at(Activity activity, const char* detail);

  service::Context& context_;
  Reports& reports_;
  Settings settings_;
  std::uint64_t epoch_;  // whose state is read
  LiveCell cell_;
  std::vector<PlannedValue> plan_;
  std::optional<PartStore> store_;  // opened on first use, and again after an error
  std::optional<Pending> pending_;
  bool unusable_ = false;      // the folder was, when this service began
  std::uint64_t rescued_ = 0;  // the step, if it was saved because the world is left, or could not be
};

/// The body for service::run.
void service_body(service::Context& context);

}  // namespace ganymede::checkpoint
