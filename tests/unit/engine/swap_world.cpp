#include "tests/unit/engine/swap_world.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "common/base/error.h"
#include "common/cell/layouts.h"
#include "common/service/settings.h"
#include "common/step_protocol/change.h"
#include "services/optimizer/plugin_folder.h"
#include "services/optimizer/server.h"
#include "services/worker/engine/job/membership.h"
#include "tests/support/tree.h"
#include "tests/unit/engine/on_ranks.h"

namespace ganymede::worker {

namespace sp = step_protocol;

SwapCell::SwapCell(const std::vector<config::Config>& epochs, const service::Job& job, int rank)
    : TestCell(epochs.front(), rank, job.epoch(0).optimizers()), configs_(epochs) {
  for (std::uint64_t epoch = 0; epoch < configs_.size(); ++epoch) {
    placements_.push_back(placement::build(configs_[epoch], rank, job.epoch(epoch).optimizers()));
    hashes_.push_back(service::plugin_hash(job.epoch(epoch).plugins));
    if (epoch > 0) make_segments(shm::epoch_layouts(configs_[epoch], placements_[epoch], epoch));
  }
}

std::uint64_t SwapCell::committed(std::uint64_t epoch) {
  return sp::committed_step(service::epoch_control(*this, epoch).words->chunks_done.load(),
                            placements_.at(epoch).chunks.size());
}

namespace {

thread_local const std::atomic<bool>* own_end = nullptr;  // of the server whose thread it is

}  // namespace

bool SwapCell::wait(const sp::Word& word, const std::function<bool(std::uint64_t)>& ready,
                    const std::function<bool()>& give_up, Deadline deadline, const char* what) {
  auto ended = [&] { return (own_end != nullptr && own_end->load()) || (give_up && give_up()); };
  return TestCell::wait(word, ready, ended, deadline, what);
}

SwapServer::SwapServer(SwapCell& cell, std::uint64_t epoch)
    : thread_([this, &cell, epoch] {
        own_end = &end_;
        try {
          optimizer::serve(cell, epoch, [this] { return end_.load(); });
        } catch (const std::exception& fault) {
          fault_ = fault.what();
        }
      }) {}

SwapServer::~SwapServer() {
  end_ = true;
  thread_.join();
  EXPECT_EQ(fault_, "");
}

class SwapWorld::Source final : public CommunicatorSource {
 public:
  explicit Source(std::shared_ptr<ThreadPost> post) : post_(std::move(post)) {}
  std::unique_ptr<collectives::Communicator> make_control(const collectives::Group& group) override {
    return make_thread_communicator(group, post_);
  }
  void publish(std::uint64_t) override {}
  std::unique_ptr<collectives::Communicator> make(const collectives::Group& group) override {
    return make_thread_communicator(group, post_);
  }

 private:
  std::shared_ptr<ThreadPost> post_;
};

namespace {

config::Config world_config(const std::string& optimizer) {
  config::Config config = tiny_config();
  config.parallel.ranks = SwapWorld::ranks;
  config.optimizer.name = optimizer;
  if (optimizer.starts_with("muon")) config.optimizer.groups[config::rest_group].optimizer = "adamw";
  return config;
}

service::JobPlugin prepared(const std::string& name) {
  optimizer::PreparedPlugin plugin = optimizer::prepare_plugin(GANYMEDE_BINARY_DIR "/plugins", name, ".");
  return {plugin.plugin.facts(name), plugin.path, plugin.plugin.hash};
}

}  // namespace

SwapWorld::SwapWorld(const std::vector<std::string>& optimizers, const std::function<void(config::Config&)>& tune)
    : before_(std::filesystem::current_path()) {
  std::filesystem::current_path(folder_.path());
  job_.id = 1;
  for (const std::string& name : optimizers) {
    config::Config config = world_config(name);
    tune(config);
    service::JobEpoch epoch{configs_.size(), service::config_file, {}};
    for (const std::string& one : config::optimizers_of(config.optimizer)) {
      epoch.plugins.push_back(prepared(one));
      auto hyper =
          optimizer::hyper_parameters(*optimizer::load_plugin(epoch.plugins.back().file).table, one, config.optimizer);
      config.optimizer.hyper.merge(hyper);
    }
    configs_.push_back(config);
    job_.epochs.push_back(epoch);
  }
  job_.plugins = job_.epochs.front().plugins;
  service::write_job(job_);
  for (int rank = 0; rank < ranks; ++rank) {
    cells_[rank] = std::make_unique<SwapCell>(configs_, job_, rank);
    for (auto& word : cells_[rank]->control().working_copy_ready) word = sp::never;
    servers_[rank][0] = std::make_unique<SwapServer>(*cells_[rank], 0);
  }
  for (auto& cell : cells_)
    while (cell->control().block->state_ready.load() != 1) std::this_thread::yield();
  form();
}

SwapWorld::~SwapWorld() {
  if (killer_.joinable()) killer_.join();
  for (Worker& worker : workers_) worker.engine.reset();
  std::filesystem::current_path(before_);
}

void SwapWorld::form() {
  for (Worker& worker : workers_) {
    worker.engine.reset();
    worker = {};
  }
  post_ = std::make_shared<ThreadPost>();
  ++generation_;
  auto faults = on_ranks(ranks, [&](int rank) {
    Worker& worker = workers_[rank];
    worker.source = std::make_unique<Source>(post_);
    worker.end = std::make_unique<AttemptEnd>();
    worker.engine = std::make_unique<EpochEngine>(*cells_[rank], *worker.source, generation_, 20, *worker.end);
    Beginning begin = exchange(*cells_[rank], worker.engine->communicators(), generation_, Deadline::after_seconds(20));
    worker.engine->begin(begin.update_pending ? begin.step - 1 : 0);
    if (rank == 0) next_ = begin.step;
  });
  for (auto& fault : faults)
    if (fault) std::rethrow_exception(fault);
}

void SwapWorld::swap_to(std::uint64_t epoch, std::uint64_t warm_steps) {
  sp::Setting setting = service::setting_of(configs_[epoch]);
  setting.number = ++changes_;
  setting.state_epoch = epoch;
  setting.warm_steps = warm_steps;
  for (int rank = 0; rank < ranks; ++rank) {
    servers_[rank][epoch] = std::make_unique<SwapServer>(*cells_[rank], epoch);
    sp::prepare(*cells_[rank]->control().block, setting);
  }
}

void SwapWorld::step() {
  auto faults = on_ranks(ranks, [&](int rank) {
    EpochEngine& engine = *workers_[rank].engine;
    cells_[rank]->serve(next_);
    engine.follow(engine->train(next_).record);
  });
  if (killer_.joinable()) killer_.join();
  bool ended = std::ranges::any_of(workers_, [](const Worker& worker) { return worker.end->is_over(); });
  for (auto& fault : faults)
    if (fault && !ended) std::rethrow_exception(fault);
  if (ended) return form();
  ++next_;
}

void SwapWorld::kill_workers_in(std::chrono::microseconds time) {
  killer_ = std::thread([this, time] {
    std::this_thread::sleep_for(time);
    for (Worker& worker : workers_) worker.end->over("killed");
    post_->close();
  });
}

void SwapWorld::restart_server(int rank, std::uint64_t epoch) {
  auto& server = servers_[rank][epoch];
  server.reset();
  server = std::make_unique<SwapServer>(*cells_[rank], epoch);
}

void SwapWorld::settle() {
  for (auto& cell : cells_) {
    std::uint64_t step = cell->control().block->decided_step.load();
    std::uint64_t epoch = sp::epoch_in_force(*cell->control().block);
    Deadline deadline = Deadline::after_seconds(20);
    while (cell->committed(epoch) < step && !deadline.passed()) std::this_thread::yield();
    if (cell->committed(epoch) != step) fail("the update of step {} did not come", step);
  }
}

std::vector<float> SwapWorld::master(int rank) {
  std::span<float> values = cells_[rank]->master();
  return {values.begin(), values.end()};
}

std::vector<std::vector<float>> SwapWorld::values() {
  std::vector<std::vector<float>> all;
  for (int rank = 0; rank < ranks; ++rank) {
    all.push_back(master(rank));
    std::uint64_t epoch = sp::epoch_in_force(*cells_[rank]->control().block);
    shm::Segment& state = cells_[rank]->segment(shm::state_name(epoch));
    for (std::size_t i = 0; i < cells_[rank]->placement_of(epoch).columns.size(); ++i) {
      auto slot = state.span<float>(fmt::format("slot.{}", i));
      all.emplace_back(slot.begin(), slot.end());
    }
  }
  return all;
}

}  // namespace ganymede::worker
