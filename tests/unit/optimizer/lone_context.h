#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <map>
#include <thread>

#include "common/base/error.h"
#include "common/cell/layouts.h"
#include "common/os/fd.h"
#include "common/service/run_directory.h"
#include "common/service/service.h"
#include "services/optimizer/plugin_folder.h"

namespace ganymede::optimizer {

constexpr std::uint64_t lone_job = 9;

/// The folder of the plugins that are built with the tests.
std::string built_in_plugins();

/// A run directory with job.json and plugin, the segments of one cell, and no launcher.
class LoneContext final : public service::Context {
 public:
  explicit LoneContext(const config::Config& settings) : config_(settings) {
    std::string pattern = testing::TempDir() + "/runXXXXXX";
    folder_ = mkdtemp(pattern.data());
    before_ = std::filesystem::current_path();
    std::filesystem::current_path(folder_);
    PreparedPlugin prepared = prepare_plugin(built_in_plugins(), "adamw", ".");
    facts.id = lone_job;
    facts.plugins = {{prepared.plugin.facts("adamw"), prepared.path, prepared.plugin.hash}};
    placement_ = placement::build(settings, 0, facts.optimizers());
    service::write_job(facts);
    make_segments(shm::cell_layouts(config_, placement_));
    control_ = service::control_of(segments_.at("control"));
    for (auto& word : control_.working_copy_ready) word.store(step_protocol::never);
  }
  ~LoneContext() override {
    std::filesystem::current_path(before_);
    std::filesystem::remove_all(folder_);
  }

  /// Prepares state epoch 1 with another plugin, as the launcher does before it offers a swap.
  void prepare_epoch(const std::string& name) {
    PreparedPlugin prepared = prepare_plugin(built_in_plugins(), name, ".");
    config::Config config = config_;
    config.optimizer.name = name;
    facts.epochs = {{0, service::config_file, facts.plugins},
                    {1, "config.1.toml", {{prepared.plugin.facts(name), prepared.path, prepared.plugin.hash}}}};
    service::write_job(facts);
    next_ = placement::build(config, 0, facts.epochs[1].optimizers());
    make_segments(shm::epoch_layouts(config, next_, 1));
    next_config_ = config;
  }

  const config::Config& config() const override { return config_; }
  const placement::Placement& placement() const override { return placement_; }
  const config::Config& config_of(std::uint64_t epoch) override { return epoch == 0 ? config_ : next_config_; }
  const placement::Placement& placement_of(std::uint64_t epoch) override { return epoch == 0 ? placement_ : next_; }
  int rank() const override { return 0; }
  std::uint64_t job() const override { return lone_job; }
  service::Control& control() override { return control_; }
  shm::Segment& segment(const std::string& name) override { return segments_.at(name); }
  std::unique_ptr<msg::Client> launcher_client() override { return nullptr; }
  bool finishing() const override { return stop.load(); }
  void at(std::uint64_t, std::uint64_t, const char*) override { reports++; }
  bool wait(const step_protocol::Word& word, const std::function<bool(std::uint64_t)>& ready,
            const std::function<bool()>& give_up, Deadline deadline, const char* what) override {
    while (!ready(word.load())) {
      if (finishing() || (give_up && give_up())) return false;
      if (deadline.passed()) fail("waited too long for {}", what);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  }

  service::Job facts;
  std::atomic<bool> stop{false};
  std::atomic<int> reports{0};

 private:
  void make_segments(const std::vector<shm::Layout>& layouts) {
    for (const shm::Layout& layout : layouts) {
      os::Fd fd(memfd_create("segment", MFD_CLOEXEC));
      EXPECT_EQ(ftruncate(fd.get(), static_cast<off_t>(layout.size)), 0);
      segments_.emplace(layout.name, shm::Segment::create(fd.get(), layout, lone_job));
    }
  }

  config::Config config_, next_config_;
  placement::Placement placement_, next_;  // of the first and of the next state epoch
  std::filesystem::path folder_, before_;
  std::map<std::string, shm::Segment> segments_;
  service::Control control_;
};

/// Decides the next step as the worker would, by AdamW: every gradient is one. `edit` may change the record before it
/// is sealed.
void decide(
    LoneContext& context, const std::function<void(step_protocol::DecisionRecord&)>& edit = [](auto&) {});

}  // namespace ganymede::optimizer
