#pragma once

#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "common/cell/layouts.h"
#include "common/config/config.h"
#include "common/msg/server.h"
#include "common/os/files.h"
#include "common/os/signals.h"
#include "common/service/run_directory.h"
#include "common/service/service.h"
#include "common/shm/keeper_client.h"
#include "launcher/keeper/segment_server.h"
#include "tests/support/builtin_facts.h"

namespace ganymede::service {

/// A run directory with keeper and launcher in this process, for one service that runs in this process too.
class FakeNode {
 public:
  FakeNode() {
    os::block_signals();  // before any thread, as a service does
    char name[] = "/tmp/ganymede-service-XXXXXX";
    folder_ = ::mkdtemp(name);
    std::filesystem::current_path(folder_);
    for (const char* folder : {"ipc", "logs"}) os::make_private_folder(folder);
    config_.parallel.ranks = 2;
    os::write_file_atomically(config_file, config::effective(config_));
    write_job(job_);
    segments_ = std::make_unique<keeper::SegmentServer>(folder_ + "/" + keeper_socket, store_);
    keeper_ = std::thread([this] { keep(); });
    start_launcher();
  }
  ~FakeNode() {
    launcher_.reset();
    stopping_ = true;
    keeper_.join();
    std::filesystem::current_path("/");
    std::filesystem::remove_all(folder_);
  }

  /// Makes the segments of a rank as the launcher does.
  void make_segments(int rank) {
    shm::KeeperClient client(folder_ + "/" + keeper_socket);
    for (const shm::Layout& layout : shm::cell_layouts(config_, placement::build(config_, rank, job_.optimizers()))) {
      os::Fd fd = client.create(shm::held_name(rank, layout.name), layout.size, Deadline::after_seconds(10));
      shm::Segment segment = shm::Segment::create(fd.get(), layout, job_.id);
      if (layout.name == "control") control_of(segment).block->decided_step = 17;
    }
  }

  void start_launcher() {
    launcher_ =
        std::make_unique<msg::Server>("ipc://" + folder_ + "/" + launcher_socket,
                                      [this](const std::string& who, const msg::Message& m) { return on(who, m); });
  }
  void stop_launcher() { launcher_.reset(); }

  /// Runs a service in this thread.
  int run(Kind kind, int rank, const std::function<void(Context&)>& body) {
    std::vector<std::string> words = {"service", "--run", folder_, "--rank", std::to_string(rank)};
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    return service::run(kind, static_cast<int>(argv.size()), argv.data(), body);
  }

  struct Beat {
    fbs::ServiceState state;
    std::uint64_t progress, step;
    std::string detail;
  };
  template <class Condition>
  bool eventually(Condition condition) {
    for (int i = 0; i < 2000; ++i) {
      {
        std::lock_guard lock(mutex_);
        if (condition()) return true;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  }

  /// What was fatal so far: exit code and text.
  std::vector<std::pair<int, std::string>> fatals() {
    std::lock_guard lock(mutex_);
    return fatal_;
  }

  std::string folder_;
  config::Config config_;
  Job job_{99, {{builtin_facts().front(), "plugins/adamw.so", 5}}, ""};
  std::mutex mutex_;  // guards what follows
  std::vector<std::string> registered_;
  std::vector<Beat> beats_;
  std::vector<std::pair<int, std::string>> fatal_;
  bool finish_ = false;

 private:
  void keep() {
    while (!stopping_) {
      pollfd ready{segments_->fd(), POLLIN, 0};
      ::poll(&ready, 1, 20);
      segments_->serve();
    }
  }

  msg::Message on(const std::string& who, const msg::Message& message) {
    std::lock_guard lock(mutex_);
    if (message.as<fbs::Register>() != nullptr) registered_.push_back(who);
    if (const auto* beat = message.as<fbs::Heartbeat>()) {
      beats_.push_back({beat->state(), beat->progress(), beat->step(), beat->detail()->str()});
    }
    if (const auto* fatal = message.as<fbs::FatalReport>()) {
      fatal_.emplace_back(fatal->exit_code(), fatal->text()->str());
      return msg::ack(message);
    }
    return msg::Message::build(message.envelope().job(), message.envelope().id(), [this](auto& builder) {
      return msg::Message::body(fbs::CreateOrders(builder, 1, finish_));
    });
  }

  keeper::SegmentStore store_{std::uint64_t{1} << 34};
  std::unique_ptr<keeper::SegmentServer> segments_;
  std::unique_ptr<msg::Server> launcher_;
  std::atomic<bool> stopping_ = false;
  std::thread keeper_;
};

}  // namespace ganymede::service
