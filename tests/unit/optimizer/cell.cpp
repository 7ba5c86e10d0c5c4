#include "tests/unit/optimizer/cell.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "common/base/hash.h"
#include "common/base/random.h"
#include "services/optimizer/loading.h"
#include "tests/support/tree.h"

namespace ganymede::optimizer {

const Plugin& plugin(const std::string& name) {
  static std::map<std::string, Plugin> loaded;
  if (!loaded.contains(name)) loaded[name] = load_plugin(GANYMEDE_BINARY_DIR "/plugins/" + name + ".so");
  return loaded[name];
}

Tables tables_of(const config::Config& config) {
  Tables tables;
  for (const std::string& name : config::optimizers_of(config.optimizer)) tables.push_back(plugin(name).table);
  return tables;
}

namespace {

std::vector<placement::OptimizerFacts> facts_of(const config::Config& config) {
  std::vector<placement::OptimizerFacts> facts;
  for (const std::string& name : config::optimizers_of(config.optimizer)) facts.push_back(plugin(name).facts(name));
  return facts;
}

}  // namespace

std::vector<double> default_hyper(const config::Config& config) {
  std::map<std::string, double> all;
  for (const std::string& name : config::optimizers_of(config.optimizer))
    all.merge(hyper_parameters(*plugin(name).table, name, config.optimizer));
  std::vector<double> values;
  for (const auto& entry : all) values.push_back(entry.second);
  return values;
}

config::Config Cell::muon_config(config::ParameterWire wire) {
  config::Config config = small_config(wire);
  config.optimizer.name = "muon";
  config.optimizer.groups[config::rest_group].optimizer = "adamw";
  return config;
}

config::Config Cell::normuon_config(config::ParameterWire wire) {
  config::Config config = muon_config(wire);
  config.optimizer.name = "normuon";
  return config;
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
      placement(placement::build(settings, rank, facts_of(settings))),
      control_(std::make_unique<step_protocol::ControlBlock>()),
      words_(std::make_unique<step_protocol::EpochWords>()),
      ready_(placement.buckets.size()),
      marks_(placement.chunks.size()),
      flags_(placement.chunks.size()),
      sent_words_(placement.buckets.size()),
      returned_words_(placement.buckets.size()),
      strips_(static_cast<std::size_t>(placement.strips)) {
  auto elements = static_cast<std::size_t>(placement.shard_elements);
  gradients_.resize(elements);
  master_.resize(elements);
  for (std::int64_t column : placement.columns) state_.emplace_back(static_cast<std::size_t>(column));
  redo_.resize(static_cast<std::size_t>(placement.strips) * (1 + state_.size()) * placement::tile_elements);
  images_.resize(static_cast<std::size_t>(side_slots) * (1 + state_.size()) * placement::chunk_elements);
  sent_.resize(static_cast<std::size_t>(placement.matrix_elements));
  returned_.resize(sent_.size());
  wire::WorkingForm form = wire::working_form(settings, placement);
  working_.resize(static_cast<std::size_t>(form.bytes));
  counts_.resize(settings.model.experts);
  memory = {control_.get(), words_.get(), ready_, counts_, gradients_, master_, {},
            redo_,          working_,     form,   marks_,  flags_,     images_};
  for (auto& slot : state_) memory.state.emplace_back(slot);
  memory.strips = strips_;
  began_.resize(placement.parameters.size() * state_.size());
  memory.began = began_;
  reductions_.resize(static_cast<std::size_t>(placement.reductions.elements));
  memory.reductions = reductions_;
  memory.matrices_sent = sent_words_;
  memory.matrices_returned = returned_words_;
  memory.sent = sent_;
  memory.returned = returned_;
  fill_initial(placement, settings.run.seed, memory);
  publish_all(placement, 0, memory);
}

EngineOptions Cell::options(int threads) const {
  EngineOptions options;
  options.bias_update_rate = 1e-3;
  options.optimizer_hash = 77;
  options.state_epoch = epoch;
  options.threads = threads;
  return options;
}

void Cell::decide(const Decision& decision) {
  std::uint64_t step = control_->decided_step.load() + 1;
  for (std::size_t i = 0; i < gradients_.size(); i++) gradients_[i] = static_cast<float>(uniform(step, 0, i) - 0.5);
  for (std::size_t i = 0; i < counts_.size(); i++) counts_[i] = static_cast<std::int64_t>(step * 7 + i * 3) % 11;
  for (std::size_t i = 0; i < reductions_.size(); i++)
    reductions_[i] = 40 + 45.5 * static_cast<double>((step * 3 + i) % 7);
  const step_protocol::DecisionRecord& before = control_->record_of(step - 1);
  step_protocol::DecisionRecord record;
  record.step = step;
  record.clip_factor = 0.5;
  record.lr = 1e-2;
  record.group_count = placement.update.groups.size();
  for (std::size_t i = 0; i < record.group_count; i++) record.groups[i] = {record.lr / static_cast<double>(i + 1), 0.1};
  std::vector<double> hyper = decision.hyper.empty() ? default_hyper(config) : decision.hyper;
  record.hyper_count = hyper.size();
  std::ranges::copy(hyper, record.hyper);
  record.weight_decay = 0.1;
  record.apply = decision.apply ? 1 : 0;
  record.updates = (step > 1 ? before.updates : 0) + record.apply;
  record.snapshot_after = decision.snapshot_after ? 1 : 0;
  record.snapshot_before = step > 1 ? before.snapshot_after : 0;
  record.stop_after = decision.stop_after ? 1 : 0;
  record.optimizer_hash = 77;
  record.counts_hash = hash64(std::as_bytes(std::span(counts_)));
  if (!reductions_.empty()) record.reductions_hash = hash64(std::as_bytes(std::span(reductions_)));
  record.checksum = record.compute_checksum();
  control_->record_of(step) = record;
  control_->decided_step.store(step);
}

void Cell::finish(UpdateEngine& engine) {
  while (engine.advance().action.kind != step_protocol::UpdateActionKind::await_decision) continue;
}

void Cell::return_matrices() {
  std::uint64_t step = memory.control->decided_step.load();
  for (const placement::OwnedRange& range : placement.owned) {
    auto bucket = static_cast<std::size_t>(range.bucket);
    bool due = sent_words_[bucket].load() == step && returned_words_[bucket].load() != step;
    if (!due || !placement.update.optimizer_of(range.parameter).matrices) continue;
    for (std::int64_t i = range.matrix_offset; i < range.matrix_offset + range.count; i++)
      returned_[static_cast<std::size_t>(i)] = std::sin(3 * sent_[static_cast<std::size_t>(i)]);
    std::int64_t rows = placement.rows_in(range.parameter, range.first, range.count).count;
    auto slots = static_cast<std::int64_t>(placement.update.optimizer_of(range.parameter).row_slots.size());
    for (std::int64_t row = 0; row < rows * slots; row++) {
      auto at = static_cast<std::size_t>(range.row_values_offset + row);
      auto first = static_cast<std::size_t>(range.matrix_offset);
      returned_[at] = 0.5f * sent_[at] + static_cast<float>(row + 1) * std::abs(sent_[first]);
    }
  }
  for (std::size_t i = 0; i < sent_words_.size(); i++) {
    if (sent_words_[i].load() == step) returned_words_[i].store(step);
  }
}

void Cell::finish_with_matrices(UpdateEngine& engine) {
  while (true) {
    Advance done = engine.advance();
    if (done.action.kind == step_protocol::UpdateActionKind::await_decision) return;
    if (!done.carried_out) return_matrices();
  }
}

void Cell::finish_with_deaths(const std::function<void(const Death&)>& torn) {
  std::set<std::tuple<std::uint64_t, std::int64_t, step_protocol::TileActionKind>> of_tiles;
  std::set<std::pair<std::uint64_t, step_protocol::UpdateActionKind>> of_spans;
  EngineOptions mortal = options();
  mortal.observed = [&](const TileEvent& event) {
    if (of_tiles.emplace(event.tile.chunk, event.tile.from, event.kind).second) throw Death{event};
  };
  while (true) {
    UpdateEngine server(placement, tables_of(config), memory, mortal);
    try {
      while (true) {
        Advance done = server.advance();
        if (done.action.kind == step_protocol::UpdateActionKind::await_decision) return;
        if (!done.carried_out) {
          return_matrices();
        } else if (of_spans.emplace(done.action.chunk, done.action.kind).second) {
          throw Death{std::nullopt, done.action};
        }
      }
    } catch (const Death& death) {
      torn(death);
    }
  }
}

std::uint64_t Cell::tiles() const {
  std::uint64_t count = 0;
  for (const placement::Chunk& chunk : placement.chunks) {
    std::int64_t all = chunk.parameter < 0 ? 0 : chunk.count;
    count += static_cast<std::uint64_t>((all + placement::tile_elements - 1) / placement::tile_elements);
  }
  return count;
}

std::uint64_t Cell::committed() const {
  return step_protocol::committed_step(words_->chunks_done.load(), placement.chunks.size());
}

Values Cell::values() const { return {master_, state_, working_}; }

std::vector<Values> undisturbed_with_matrices(const config::Config& config, int steps) {
  Cell cell(config);
  UpdateEngine engine = cell.engine();
  std::vector<Values> after;
  for (int i = 0; i < steps; i++) {
    cell.decide();
    cell.finish_with_matrices(engine);
    after.push_back(cell.values());
  }
  return after;
}

}  // namespace ganymede::optimizer
