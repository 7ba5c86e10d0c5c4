#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "common/cell/layouts.h"
#include "common/os/files.h"
#include "common/service/settings.h"
#include "launcher/supervisor/optimizer_swap.h"
#include "tests/support/process_wait.h"
#include "tests/support/served_segments.h"
#include "tests/support/temporary_folder.h"

namespace ganymede::launcher {

constexpr std::uint64_t warm_steps = 3;

/// A launcher's part of two cells in a run directory of its own. Its services sleep; `decide` plays the workers.
class OptimizerSwapTest : public ::testing::Test {
 protected:
  OptimizerSwapTest() {
    std::filesystem::current_path(folder_.path());
    std::filesystem::create_directory(service::log_folder);
    std::string program = folder_.path() + "/ganymede-optimizer";
    std::ofstream(program) << "#!/bin/sh\ntrap '' USR1\nexec sleep 1000\n";
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    for (const char* other : {"checkpoint", "data", "worker"})
      std::filesystem::copy_file(program, folder_.path() + "/ganymede-" + other);
    config_.parallel.ranks = 2;
    config_.optimizer.hyper = {{"adamw.beta1", 0.9}};
    os::write_file_atomically(service::config_file, config::effective(config_));
    std::filesystem::create_directory(service::plugin_folder);
    copy_plugin("adamw");
    job_.id = 7;
    job_.plugins = {{{"adamw", {"momentum"}, false}, "plugins/adamw.so", 1}};
    service::write_job(job_);
    cells_.emplace(Cells::create(config_, job_, {0, 2}, 0, keeper_, [](std::uint64_t, std::uint64_t) {}));
    launch();
    crew_->start_all();
  }
  ~OptimizerSwapTest() override {
    end_services();
    std::filesystem::current_path(before_);
  }

  /// As when their launcher dies.
  void end_services() {
    swap_.reset();
    crew_->signal_all(SIGKILL, "their launcher ends");
    until([&] { return !crew_->any_alive(); });
  }
  /// As a launcher that comes first, or after another one.
  void launch() {
    epochs_.emplace(config_, service::read_job());
    changes_.emplace(config_, job_, *cells_, *epochs_);
    crew_.emplace(
        io_, config_, coordinator::RankRange{0, 2}, os::Machine{}, folder_.path(), folder_.path(), terminal_,
        [this](ServiceProcess& process, const os::Ending& ending) {
          if (swap_) swap_->crew().ended(process, ending);
        },
        [this](int rank) { return cells_->epoch_in_force(rank); });
    swap_.emplace(parts(1000));
  }
  SwapParts parts(std::uint64_t steps) {
    return {job_, *cells_, *crew_, *changes_, *epochs_, terminal_, HostBudget{}, steps, {}, keeper_};
  }

  /// As a launcher of a run with other settings.
  void launch_with(const std::function<void(config::Config&)>& edit) {
    end_services();
    edit(config_);
    launch();
    crew_->start_all();
  }

  static void copy_plugin(const std::string& name) { std::ofstream("plugins/" + name + ".so") << name; }

  /// Its plugin is copied into the run directory, as `ganymede ctl` does.
  SwapOrder order(bool dry_run = false) {
    copy_plugin("lion");
    config::Config config = config_;
    config.optimizer.name = "lion";
    config.optimizer.hyper = {{"adamw.beta1", 0.9}, {"lion.beta1", 0.8}};
    SwapOrder wish{config::effective(config), {{{"lion", {"momentum"}, false}, "plugins/lion.so", 2}}, warm_steps};
    wish.dry_run = dry_run;
    wish.base = changes_->configuration_hash();
    return wish;
  }

  template <class Holds>
  void until(Holds holds) {
    test::wait_until(
        [&] {
          io_.restart();
          io_.poll();
          if (swap_) swap_->watch(now_seconds());
          if (crew_) crew_->watch(now_seconds());
          return holds();
        },
        20, "what the test waits for");
  }
  void until(SwapState state) {
    until([&] {
      auto now = swap_->under_way();
      return now && now->state == state;
    });
  }

  /// What the standby server of a rank says when it has its plugins and memory.
  void say_ready(int rank) {
    auto layout = shm::state_layout(placement::build(epochs_->config_of(1), rank, epochs_->of(1).optimizers()), 1);
    os::Fd fd = keeper_.get(shm::held_name(rank, "state.1"), Deadline::after_seconds(5));
    shm::Segment state = shm::Segment::attach(fd.get(), layout, job_.id);
    service::epoch_control_of(state).ready->store(1);
  }
  void offer() {
    swap_->order(order());
    until([&] { return crew_->standby_of(1) != nullptr && crew_->standby_of(1)->alive(); });
    for (int rank : {0, 1}) say_ready(rank);
    until(SwapState::warming);
  }
  void decide(std::uint64_t step, const std::function<void(step_protocol::DecisionRecord&)>& edit) {
    for (int rank : {0, 1}) decide_on(rank, step, edit);
  }
  void decide_on(int rank, std::uint64_t step, const std::function<void(step_protocol::DecisionRecord&)>& edit) {
    auto& block = *cells_->control(rank).block;
    auto& record = block.record_of(step);
    record = {};
    record.step = step;
    record.updates = step;
    edit(record);
    record.checksum = record.compute_checksum();
    block.decided_step = step;
  }
  /// A sign of life of a standby that does the same as before.
  void beat(const ServiceProcess& standby, const char* detail) {
    flatbuffers::FlatBufferBuilder builder;
    builder.Finish(fbs::CreateHeartbeatDirect(builder, fbs::ServiceKind::optimizer, standby.id().rank, standby.pid(),
                                              fbs::ServiceState::running, 7, 0, detail));
    crew_->heartbeat(standby.id(), *flatbuffers::GetRoot<fbs::Heartbeat>(builder.GetBufferPointer()));
  }
  bool holds(const std::string& name) const {
    for (const auto& held : keeper_.list(Deadline::after_seconds(5)))
      if (held.name == name) return true;
    return false;
  }

  std::filesystem::path before_ = std::filesystem::current_path();
  test::TemporaryFolder folder_;
  config::Config config_;
  service::Job job_;
  test::ServedSegments served_{std::uint64_t{1} << 40};
  shm::KeeperClient keeper_{served_.path()};
  boost::asio::io_context io_;
  int nowhere_ = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  Terminal terminal_{nowhere_, false};
  std::optional<Cells> cells_;
  std::optional<Epochs> epochs_;
  std::optional<Changes> changes_;
  std::optional<Crew> crew_;
  std::optional<OptimizerSwap> swap_;
};

}  // namespace ganymede::launcher
