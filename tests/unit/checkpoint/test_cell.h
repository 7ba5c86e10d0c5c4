#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/base/hash.h"
#include "common/cell/layouts.h"
#include "common/os/fd.h"
#include "common/service/settings.h"
#include "common/step_protocol/snapshot_machine.h"
#include "common/step_protocol/snapshot_statistics.h"
#include "services/checkpoint/checkpoint_service.h"
#include "tests/support/builtin_facts.h"

namespace ganymede::checkpoint {

/// Checkpoints sync every file; in memory that costs nothing.
inline const int test_folders_in_memory = [] {
  return ::access("/dev/shm", W_OK) == 0 ? ::setenv("TMPDIR", "/dev/shm", 0) : 0;
}();

inline const std::vector<std::string> test_slots = {"first_moment", "second_moment"};

/// A small model whose rows nothing divides and whose vectors leave gaps.
inline config::Config test_config(int ranks, int expert_group, int replicas = 1) {
  config::Config config;
  config.parallel.ranks = ranks;
  config.parallel.expert_group = expert_group;
  config.parallel.replicas = replicas;
  config.model.hidden = 48;
  config.model.vocabulary = 1031;
  config.model.layers = 11;  // "layers.10" sorts before "layers.2"
  config.model.heads = 3;
  config.model.kv_heads_sliding = 1;
  config.model.experts = 4;
  config.model.expert_ffn = 16;
  config.model.ffn = 64;
  config.data.rows_per_step = 12;
  config.checkpoint.keep_last = 2;
  return config;
}

/// A world that writes a checkpoint, and another one that reads it.
struct Worlds {
  int ranks, expert_group, new_ranks, new_expert_group, replicas = 1, new_replicas = 1;
};

/// What the segments hold after `step`: a pure function of names, so every world holds the same.
struct TestValues {
  std::uint64_t seed;
  TestValues(const std::string& slot, const std::string& parameter, std::uint64_t step)
      : seed(hash64(slot + parameter, step)) {}
  float operator()(std::int64_t element) const {
    std::uint64_t mixed = (seed ^ static_cast<std::uint64_t>(element)) * 0x9e3779b97f4a7c15;
    return static_cast<float>(mixed >> 40) * 0x1p-20f;
  }
};

/// The segments of one cell in this process's memory (shared with children), as a service sees them.
class TestCell : public service::Context {
 public:
  TestCell(config::Config config, int rank)
      : config_(std::move(config)), placement_(placement::build(config_, rank, builtin_facts())) {
    make_segments(shm::cell_layouts(config_, placement_));
    control_ = service::control_of(segment("control"));
    prepare(*control_.block, service::setting_of(config_));
  }

  /// The optimizer is swapped for one that has the same slots: what is decided from now on is of the next epoch.
  void swap() {
    ++epoch_;
    make_segments(shm::epoch_layouts(config_, placement_, epoch_));
  }

  const config::Config& config() const override { return config_; }
  const config::Config& config_of(std::uint64_t) override { return config_; }
  const placement::Placement& placement_of(std::uint64_t) override { return placement_; }
  const placement::Placement& placement() const override { return placement_; }
  int rank() const override { return placement_.rank; }
  std::uint64_t job() const override { return job_; }
  service::Control& control() override { return control_; }
  shm::Segment& segment(const std::string& name) override { return segments_.at(name); }
  std::unique_ptr<msg::Client> launcher_client() override { return nullptr; }
  bool finishing() const override { return finishing_; }
  void at(std::uint64_t, std::uint64_t, const char*) override {
    ++control_.services[static_cast<int>(service::Kind::checkpoint)].progress;
  }
  bool wait(const step_protocol::Word& word, const std::function<bool(std::uint64_t)>& ready,
            const std::function<bool()>& give_up, Deadline, const char*) override {
    while (!ready(word.load())) {
      if (give_up()) return false;
    }
    return true;
  }

  std::span<float> array(const std::string& slot) {
    if (slot == master_slot) return segment("master").span<float>("values");
    return segment(shm::state_name(epoch_)).span<float>(slot == test_slots[0] ? "slot.0" : "slot.1");
  }
  std::span<std::uint64_t> began() { return segment(shm::state_name(epoch_)).span<std::uint64_t>("began"); }
  static std::vector<std::string> all_slots() {
    std::vector<std::string> names = test_slots;
    names.insert(names.begin(), master_slot);
    return names;
  }
  /// The state after `step` in master and slots.
  void fill(std::uint64_t step) {
    for_values(step, [](float& held, float value) { held = value; });
  }
  /// How many owned elements differ from the state after `step`.
  std::int64_t wrong_elements(std::uint64_t step) {
    std::int64_t wrong = 0;
    for_values(step, [&](float& held, float value) { wrong += held != value; });
    return wrong;
  }
  void decide(step_protocol::DecisionRecord record) {
    record.state_epoch = epoch_;
    record.checksum = record.compute_checksum();
    control_.block->record_of(record.step) = record;
    step_protocol::keep_statistics(*control_.block, record);
    control_.block->decided_step = record.step;
  }
  /// As worker and optimizer server leave it: decided, committed, armed.
  void order_snapshot(std::uint64_t step, bool last) {
    decide({.step = step,
            .stop_after = last ? 1u : 0u,
            .snapshot_after = 1,
            .statistics = {
                .steps = step, .loss = {.mean = 2, .variance = 0.1}, .grad_norm = {.mean = 1, .variance = 0.3}}});
    control_.block->snapshot = step_protocol::armed_word(step);
  }

  bool finishing_ = false;
  std::uint64_t job_ = 1;

 private:
  /// Calls visit(value in the segment, value after `step`) for the master and all slots of all that the cell owns.
  template <class Visit>
  void for_values(std::uint64_t step, const Visit& visit) {
    auto run = [&](std::span<float> values, const std::string& slot, const placement::OwnedRange& range,
                   std::int64_t first) {
      TestValues value(slot, placement_.parameters[range.parameter].name, step);
      for (float& held : values) visit(held, value(first++));
    };
    for (const placement::OwnedRange& range : placement_.owned) {
      run(array(master_slot).subspan(range.shard_offset, range.count), master_slot, range, range.first);
      const std::vector<std::string>& slots = placement_.update.optimizer_of(range.parameter).slots;
      for (std::size_t i = 0; i < slots.size(); ++i) {
        placement::StateRun at = placement_.state_run(range, i);
        auto column = segment(shm::state_name(epoch_)).span<float>(fmt::format("slot.{}", i));
        bool rows = placement_.per_row(range.parameter, i);
        std::int64_t first = rows ? placement_.rows_in(range.parameter, range.first, range.count).first : range.first;
        run(column.subspan(at.offset, at.count), slots[i], range, first);
      }
    }
  }
  void make_segments(const std::vector<shm::Layout>& layouts) {
    for (const shm::Layout& layout : layouts) {
      os::Fd fd(::memfd_create(layout.name.c_str(), MFD_CLOEXEC));
      if (::ftruncate(fd.get(), static_cast<off_t>(layout.size)) != 0) fail("no memory for {}", layout.name);
      segments_.emplace(layout.name, shm::Segment::create(fd.get(), layout, 1));
    }
  }

  std::uint64_t epoch_ = 0;
  config::Config config_;
  placement::Placement placement_;
  std::map<std::string, shm::Segment> segments_;
  service::Control control_;
};

/// The launcher's side of the reports, one for all ranks of a world.
class TestLauncher {
 public:
  explicit TestLauncher(int world) : world_(world) {}

  class Rank : public Reports {
   public:
    explicit Rank(TestLauncher& launcher) : launcher_(launcher) {}
    Receipt part_durable(std::uint64_t step, int rank, std::uint64_t bytes, const std::string& hash) override {
      auto& parts = launcher_.parts[step];
      parts[rank] = {bytes, hash};
      Receipt receipt{static_cast<int>(parts.size()) == launcher_.world_, {}, {}, 2.5};
      for (const auto& [of, part] : parts) {
        receipt.bytes.push_back(part.first);
        receipt.hashes.push_back(part.second);
      }
      return receipt;
    }
    void committed(std::uint64_t step, std::uint64_t, double) override { launcher_.committed_step = step; }
    void failed(std::uint64_t, const std::string& text) override { launcher_.failure = text; }

   private:
    TestLauncher& launcher_;
  };

  std::map<std::uint64_t, std::map<int, std::pair<std::uint64_t, std::string>>> parts;
  std::uint64_t committed_step = 0;
  std::string failure;

 private:
  int world_;
};

/// All cells of a world with their checkpoint services, driven by hand.
struct TestWorld {
  TestWorld(
      const config::Config& config, const std::string& checkpoints, const Reached& reached = [](std::string_view) {})
      : launcher(config.parallel.ranks) {
    for (int rank = 0; rank < config.parallel.ranks; ++rank) {
      cells.push_back(std::make_unique<TestCell>(config, rank));
      reports.push_back(std::make_unique<TestLauncher::Rank>(launcher));
    }
    start(checkpoints, reached);
  }
  /// New service processes on the same segments.
  void start(const std::string& checkpoints, const Reached& reached) {
    services.clear();
    services.resize(cells.size());
    for (std::size_t rank = 0; rank < cells.size(); ++rank) start_one(rank, checkpoints, reached);
  }
  void start_one(std::size_t rank, const std::string& checkpoints, const Reached& reached) {
    services[rank].reset();
    CheckpointService::Settings settings;
    settings.checkpoints = checkpoints;
    settings.load_from = load_from;
    settings.value_elements = 1;  // one chunk a value: many values
    settings.reached = reached;
    settings.optimizers_of = [](std::uint64_t epoch) {
      return std::vector<service::ManifestOptimizer>{{fmt::format("adamw{}", epoch), "1.0", "00000000000000ff"}};
    };
    services[rank] = std::make_unique<CheckpointService>(*cells[rank], *reports[rank], settings);
  }
  void load(std::uint64_t step) {
    for (auto& cell : cells) cell->control().block->load_step = step;
    for (auto& service : services) service->restore_if_asked();
  }
  void recover() {
    for (auto& service : services) service->recover();
  }
  void serve_all() {
    for (std::size_t rank = services.size(); rank-- > 0;) services[rank]->serve();
    services[0]->serve();  // now that every part is there
  }
  void checkpoint(std::uint64_t step, bool last = false) {
    for (auto& cell : cells) {
      cell->fill(step);
      cell->order_snapshot(step, last);
    }
    serve_all();
  }

  std::string load_from;  // of services that are started from now on
  TestLauncher launcher;
  std::vector<std::unique_ptr<TestCell>> cells;
  std::vector<std::unique_ptr<TestLauncher::Rank>> reports;
  std::vector<std::unique_ptr<CheckpointService>> services;
};

}  // namespace ganymede::checkpoint
