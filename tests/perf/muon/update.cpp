#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "common/base/deadline.h"
#include "common/base/error.h"
#include "common/base/hash.h"
#include "common/collectives/single.h"
#include "common/os/futex.h"
#include "common/os/machine.h"
#include "services/optimizer/plugin.h"
#include "services/optimizer/server.h"
#include "services/optimizer/update_engine.h"
#include "services/worker/engine/communicators.h"
#include "services/worker/engine/engine.h"
#include "services/worker/engine/process_settings.h"
#include "tests/support/tree.h"
#include "tests/unit/engine/test_cell.h"

/// Milliseconds of Muon's update: both phases of the optimizer server in one thread, the worker's Newton–Schulz on all
/// cores in another, for all matrices of a recipe's model.
namespace ganymede {
namespace {

config::Config muon(const std::string& recipe, const std::vector<std::string>& settings) {
  config::Config config = config::load(recipe, settings);
  config.parallel = {};
  config.optimizer.name = "muon";
  config.optimizer.groups.clear();
  config.optimizer.groups[config::rest_group].optimizer = "adamw";
  return config;
}

void decide(worker::TestCell& cell, std::uint64_t step) {
  constexpr double hyper[] = {0.9,  0.95, 1e-8,
                              0.95, 1,    0};  // adamw: beta1, beta2, eps; muon: momentum, nesterov, scale
  step_protocol::DecisionRecord record;
  record.step = record.updates = step;
  record.group_count = 2;
  record.groups[0] = record.groups[1] = {1e-3, 0.1};
  record.hyper_count = std::size(hyper);
  std::copy(std::begin(hyper), std::end(hyper), record.hyper);
  record.counts_hash = hash64(std::as_bytes(cell.control().expert_counts));
  record.checksum = record.compute_checksum();
  cell.control().block->record_of(step) = record;
  cell.control().block->decided_step.store(step);
}

/// Of all threads of this process, milliseconds.
double processor_time() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) * 1e-6;
}

nlohmann::json matrices_of(const placement::Placement& placement) {
  std::map<std::pair<std::int64_t, std::int64_t>, int> count;
  for (const auto& parameter : placement.parameters)
    if (parameter.hidden_matrix()) ++count[{parameter.rows(), parameter.row_elements()}];
  nlohmann::json all = nlohmann::json::array();
  for (const auto& [shape, times] : count) all.push_back({shape.first, shape.second, times});
  return all;
}

nlohmann::json measure(const config::Config& config, std::uint64_t steps) {
  const optimizer::Plugin plugins[] = {optimizer::load_plugin(GANYMEDE_BINARY_DIR "/plugins/muon.so"),
                                       optimizer::load_plugin(GANYMEDE_BINARY_DIR "/plugins/adamw.so")};
  worker::TestCell cell(config, 0);
  auto gradients = cell.gradients();
  std::fill(gradients.begin(), gradients.end(), 1e-3f);
  for (std::size_t i = 0; i < gradients.size(); i += 7) gradients[i] = -2e-3f;
  worker::Communicators communicators(config, cell.placement(), 60, collectives::make_single);
  worker::Engine engine(cell, communicators, 1, 0);
  optimizer::CellMemory memory = optimizer::attach(cell);
  optimizer::UpdateEngine server(cell.placement(), {plugins[0].table, plugins[1].table}, memory, {});
  std::vector<double> milliseconds, processor;
  for (std::uint64_t step = 1; step <= steps; ++step) {
    decide(cell, step);
    auto began = Clock::now();
    const double before = processor_time();
    std::thread updates([&] {
      for (auto done = server.advance(); done.action.kind != step_protocol::UpdateActionKind::await_decision;
           done = server.advance()) {
        if (done.carried_out) continue;
        auto bucket = static_cast<std::size_t>(cell.placement().chunks[done.action.chunk].bucket);
        const step_protocol::Word& word = memory.matrices_returned[bucket];
        if (std::uint64_t seen = word.load(); seen != step)
          os::wait_while_equal(word, seen, Deadline::after_seconds(1));
      }
    });
    engine.finish_update(step);
    updates.join();
    milliseconds.push_back(seconds_since(began) * 1e3);
    processor.push_back(processor_time() - before);
  }
  return {{"update_ms", milliseconds}, {"processor_ms", processor}, {"matrices", matrices_of(cell.placement())}};
}

}  // namespace
}  // namespace ganymede

int main(int argc, char** argv) {
  using namespace ganymede;
  try {
    if (argc < 3) fail_usage("perf_muon RECIPE STEPS [KEY=VALUE]...");
    config::Config config = muon(argv[1], {argv + 3, argv + argc});
    config.compute.threads = os::inspect_machine().cores;
    worker::set_up_process(config);
    fmt::print("{}\n", measure(config, std::stoull(argv[2])).dump());
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "perf_muon: {}\n", error.what());
    return 1;
  }
}
