#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "common/base/hash.h"
#include "common/placement/placement.h"
#include "services/optimizer/loading.h"
#include "services/optimizer/plugin.h"
#include "services/optimizer/update_engine.h"
#include "tests/support/builtin_facts.h"

/// How near the update comes to the memory's speed: whole steps of the engine (redo, working copy and all) on a model
/// of `millions` of parameters that no cache holds, against a copy of the same bytes.
namespace ganymede::optimizer {
namespace {

/// One dense matrix of about `millions` × 2^20 parameters, and the memory of its cell.
struct LargeCell {
  LargeCell(int millions, config::ParameterWire wire) {
    config.wire.dense_gather = wire;
    config.model.layers = 1;
    config.model.experts = 0;
    config.model.hidden = 1024;
    config.model.vocabulary = millions * 512;  // embedding and head
    placement = placement::build(config, 0, builtin_facts());
    auto elements = static_cast<std::size_t>(placement.shard_elements);
    gradients.assign(elements, 1e-3f);
    master.resize(elements);
    first.resize(elements);
    second.resize(elements);
    wire::WorkingForm form = wire::working_form(config, placement);
    working.resize(static_cast<std::size_t>(form.bytes));
    redo.resize(3 * placement::chunk_elements);
    ready = std::vector<step_protocol::Word>(placement.buckets.size());
    marks = std::vector<step_protocol::Word>(placement.chunks.size());
    flags = std::vector<step_protocol::Word>(placement.chunks.size());
    memory = {&control, ready, {}, gradients, master, {first, second}, redo, working, form, marks, flags, {}};
  }

  void decide() {
    std::uint64_t step = control.decided_step.load() + 1;
    step_protocol::DecisionRecord record;
    record.step = step;
    record.lr = 1e-3;
    record.group_count = 1;
    record.groups[0] = {record.lr, 0};
    record.hyper_count = 3;  // of AdamW: beta1, beta2, eps
    std::ranges::copy(std::array{0.9, 0.95, 1e-8}, record.hyper);
    record.checksum = record.compute_checksum();
    control.record_of(step) = record;
    control.decided_step.store(step);
  }

  config::Config config;
  placement::Placement placement;
  step_protocol::ControlBlock control{};
  std::vector<float> gradients, master, first, second, redo;
  std::vector<std::byte> working;
  std::vector<step_protocol::Word> ready, marks, flags;
  CellMemory memory;
};

void apply_step(benchmark::State& state, config::ParameterWire wire) {
  LargeCell cell(static_cast<int>(state.range(0)), wire);
  Plugin plugin = load_plugin(GANYMEDE_BINARY_DIR "/plugins/adamw.so");
  EngineOptions options;
  options.threads = static_cast<int>(state.range(1));
  UpdateEngine engine(cell.placement, {plugin.table}, cell.memory, options);
  for (auto _ : state) {
    cell.decide();
    while (engine.advance().action.kind != step_protocol::UpdateActionKind::await_decision) continue;
  }
  // Gradient, master and two moments are read; master, moments and working copy are written.
  auto bytes = static_cast<std::int64_t>(28 * cell.master.size() + cell.working.size());
  state.SetBytesProcessed(state.iterations() * bytes);
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(cell.master.size()));
}

void step_fp32(benchmark::State& state) { apply_step(state, config::ParameterWire::fp32); }
void step_bf16(benchmark::State& state) { apply_step(state, config::ParameterWire::bf16); }

/// Four arrays read and four written, 32 bytes an element: the traffic of a step with an fp32 working copy.
void copy_loop(benchmark::State& state) {
  std::size_t elements = static_cast<std::size_t>(state.range(0)) << 20;
  std::vector<float> from(4 * elements, 1.0f), to(4 * elements);
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), from.size() * sizeof(float));
    benchmark::DoNotOptimize(to.data());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(2 * from.size() * sizeof(float)));
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(elements));
}

void initial_values(benchmark::State& state) {
  LargeCell cell(static_cast<int>(state.range(0)), config::ParameterWire::fp32);
  for (auto _ : state) fill_initial(cell.placement, 1, cell.memory);
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(cell.master.size()));
}

BENCHMARK(copy_loop)->Args({32, 1})->Unit(benchmark::kMillisecond);
BENCHMARK(step_fp32)->Args({32, 1})->Args({32, 2})->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(step_bf16)->Args({32, 1})->Args({32, 2})->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(initial_values)->Args({32, 1})->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace ganymede::optimizer
