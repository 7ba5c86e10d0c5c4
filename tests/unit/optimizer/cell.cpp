#include "tests/unit/optimizer/cell.h"

#include <algorithm>
#include <array>
#include <set>

#include "common/base/hash.h"
#include "common/base/random.h"
#include "services/optimizer/loading.h"

namespace ganymede::optimizer {

constexpr std::size_t adamw_slots = 2;

const Plugin& adamw() {
  static const Plugin plugin = load_plugin(GANYMEDE_BINARY_DIR "/plugins/adamw.so");
  return plugin;
}

config::Config Cell::small_config(config::ParameterWire wire) {
  config::Config config;
  config.model.hidden = 48;
  config.model.vocabulary = 500;  // the embedding takes two chunks
  config.model.layers = 2;
  config.model.heads = 3;  // vectors shorter than the alignment: gaps
  config.model.kv_heads_sliding = 1;
  config.model.experts = 4;
  config.wire.expert_gather = wire;
  config.wire.dense_gather = wire == config::ParameterWire::fp8 ? config::ParameterWire::bf16 : wire;
  return config;
}

Cell::Cell(const config::Config& settings, int side_slots, int rank)
    : config(settings),
      placement(placement::build(settings, rank, {adamw().facts("adamw")})),
      control_(std::make_unique<step_protocol::ControlBlock>()),
      ready_(placement.buckets.size()),
      marks_(placement.chunks.size()),
      flags_(placement.chunks.size()) {
  auto elements = static_cast<std::size_t>(placement.shard_elements);
  gradients_.resize(elements);
  master_.resize(elements);
  state_.assign(adamw_slots, std::vector<float>(elements));
  redo_.resize((1 + adamw_slots) * placement::chunk_elements);
  images_.resize(side_slots * (1 + adamw_slots) * placement::chunk_elements);
  wire::WorkingForm form = wire::working_form(settings, placement);
  working_.resize(static_cast<std::size_t>(form.bytes));
  counts_.resize(settings.model.experts);
  memory = {control_.get(), ready_, counts_, gradients_, master_, {}, redo_, working_, form, marks_, flags_, images_};
  for (auto& slot : state_) memory.state.emplace_back(slot);
  fill_initial(placement, settings.run.seed, memory);
  publish_all(placement, 0, memory);
}

EngineOptions Cell::options(int threads) const {
  EngineOptions options;
  options.bias_update_rate = 1e-3;
  options.optimizer_hash = 77;
  options.threads = threads;
  return options;
}

void Cell::decide(const Decision& decision) {
  std::uint64_t step = control_->decided_step.load() + 1;
  for (std::size_t i = 0; i < gradients_.size(); i++) gradients_[i] = static_cast<float>(uniform(step, 0, i) - 0.5);
  for (std::size_t i = 0; i < counts_.size(); i++) counts_[i] = static_cast<std::int64_t>(step * 7 + i * 3) % 11;
  const step_protocol::DecisionRecord& before = control_->record_of(step - 1);
  step_protocol::DecisionRecord record;
  record.step = step;
  record.clip_factor = 0.5;
  record.lr = 1e-2;
  record.group_count = 1;
  record.groups[0] = {record.lr, 0.1};
  record.hyper_count = decision.hyper.size();
  std::ranges::copy(decision.hyper, record.hyper);
  record.weight_decay = 0.1;
  record.apply = decision.apply ? 1 : 0;
  record.snapshot_after = decision.snapshot_after ? 1 : 0;
  record.snapshot_before = step > 1 ? before.snapshot_after : 0;
  record.stop_after = decision.stop_after ? 1 : 0;
  record.optimizer_hash = 77;
  record.counts_hash = hash64(std::as_bytes(std::span(counts_)));
  record.checksum = record.compute_checksum();
  control_->record_of(step) = record;
  control_->decided_step.store(step);
}

void Cell::finish(UpdateEngine& engine) {
  while (engine.advance().action.kind != step_protocol::UpdateActionKind::await_decision) continue;
}

void Cell::finish_with_deaths(const std::function<void(const step_protocol::UpdateAction&)>& torn) {
  std::set<std::pair<std::uint64_t, step_protocol::UpdateActionKind>> deaths;
  while (true) {
    UpdateEngine server = engine();
    Advance done;
    do {
      done = server.advance();
      if (done.action.kind == step_protocol::UpdateActionKind::await_decision) return;
    } while (!deaths.emplace(done.action.chunk, done.action.kind).second);
    torn(done.action);
  }
}

std::uint64_t Cell::committed() const {
  return step_protocol::committed_step(control_->chunks_done.load(), placement.chunks.size());
}

Values Cell::values() const { return {master_, state_, working_}; }

}  // namespace ganymede::optimizer
