#pragma once

#include <map>
#include <mutex>

#include "common/service/run_directory.h"
#include "common/service/service.h"
#include "common/shm/keeper_client.h"
#include "schemas/messages_generated.h"

namespace ganymede::service {

/// The Context of a service that runs in its run directory. What the heartbeat reports is read from here.
class RunningContext final : public Context {
 public:
  /// Reads configuration and job, attaches `control`. `finishing` is set from outside and by `finish`. Throws Error.
  /// `epoch`: see Context.
  RunningContext(Kind kind, int rank, std::optional<std::uint64_t> epoch, std::atomic<bool>& finishing);

  const config::Config& config() const override { return config_; }
  const placement::Placement& placement() const override { return placement_; }
  const config::Config& config_of(std::uint64_t epoch) override;
  const placement::Placement& placement_of(std::uint64_t epoch) override;
  std::uint64_t optimizer_hash_of(std::uint64_t epoch) override;
  int rank() const override { return rank_; }
  std::optional<std::uint64_t> epoch() const override { return epoch_; }
  std::uint64_t job() const override { return job_.id; }
  Control& control() override { return control_; }
  shm::Segment& segment(const std::string& name) override;
  void release_epoch(std::uint64_t epoch) override;
  std::unique_ptr<msg::Client> launcher_client() override;
  bool finishing() const override { return finishing_.load(std::memory_order_acquire); }
  void at(std::uint64_t operation, std::uint64_t bucket, const char* detail) override;
  void plan(const PlannedTime& time) override;
  bool wait(const step_protocol::Word& word, const std::function<bool(std::uint64_t)>& ready,
            const std::function<bool()>& give_up, Deadline deadline, const char* what) override;

  Kind kind() const { return kind_; }
  void finish() { finishing_.store(true, std::memory_order_release); }
  std::string detail() const;
  fbs::ServiceState state() const;
  /// Those of the cell; of an optimizer server whose epoch is not in force its own, which nobody else sees.
  const step_protocol::ServiceWords& words() const { return writable_words(); }

 private:
  /// An epoch that came after the first.
  struct Epoch {
    config::Config config;
    placement::Placement placement;
    std::uint64_t optimizer_hash = 0;
  };
  Epoch& later_epoch(std::uint64_t number);
  step_protocol::ServiceWords& writable_words() const;
  shm::Layout layout_of(const std::string& segment);

  Kind kind_;
  int rank_;
  std::optional<std::uint64_t> epoch_;
  std::atomic<bool>& finishing_;
  Job job_;
  JobEpoch first_;
  config::Config config_;
  placement::Placement placement_;
  std::vector<shm::Layout> layouts_;
  shm::KeeperClient keeper_;
  std::mutex epochs_mutex_;
  std::map<std::uint64_t, Epoch> epochs_;
  std::mutex segments_mutex_;
  std::map<std::string, shm::Segment> segments_;
  Control control_;
  mutable step_protocol::ServiceWords own_words_{};
  std::atomic<int> clients_{0};
  std::atomic<int> waiting_{0};
  mutable std::mutex detail_mutex_;
  std::string detail_ = "starting";
};

/// Endpoint of the launcher as a service in its run directory reaches it.
std::string launcher_endpoint();

}  // namespace ganymede::service
