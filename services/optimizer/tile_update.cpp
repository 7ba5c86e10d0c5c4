#include "services/optimizer/tile_update.h"

#include <algorithm>
#include <span>

#include "common/base/error.h"
#include "services/optimizer/migration.h"
#include "services/optimizer/plugin.h"
#include "services/optimizer/selection_bias.h"
#include "services/optimizer/working_copy.h"

namespace ganymede::optimizer {

using model_spec::UpdateKind;
using placement::Phase;
using placement::tile_elements;

namespace {

/// Asks for elements that are read soon: into the second cache, for the first one is full of this tile.
void fetch(const float* from, std::int64_t count) {
  constexpr std::int64_t line = 64 / sizeof(float);
  for (std::int64_t at = 0; at < count; at += line) __builtin_prefetch(from + at, 0, 2);
}

/// What the tile behind one of `count` elements is computed from, so that memory does not rest while this one is
/// copied.
void fetch_next(const ChunkCall& call, std::int64_t count) {
  if (call.call.gradient != nullptr) fetch(call.call.gradient + count, count);
  for (std::size_t i = 0; i < call.slots; i++) {
    if (call.kept[i] != nullptr) fetch(call.kept[i] + count, count);
  }
  fetch(call.master + count, count);
}

}  // namespace

TileUpdate::TileUpdate(const placement::Placement& placement, Tables tables, const CellMemory& memory,
                       double bias_update_rate)
    : placement_(placement),
      tables_(std::move(tables)),
      memory_(memory),
      bias_update_rate_(bias_update_rate),
      zeros_(tile_elements),
      values_(placement.update.groups.size()) {
  int layers = 0;
  for (std::size_t i = 0; i < placement.parameters.size(); i++) {
    Rule rule = rule_of(static_cast<int>(i));
    if (placement.parameters[i].update == UpdateKind::selection_bias) rule.moe_layer = layers++;
    rules_.push_back(rule);
  }
  if (memory.began.empty()) return;
  EpochState state{&placement, tables_, memory.state, memory.began};
  for (std::size_t i = 0; i < rules_.size(); i++) rules_[i].began = youngest_began(state, static_cast<int>(i));
}

TileUpdate::Rule TileUpdate::rule_of(int parameter) const {
  const model_spec::ParameterSpec& spec = placement_.parameters[parameter];
  const placement::UpdateGroups& update = placement_.update;
  Rule rule;
  rule.group = static_cast<std::size_t>(update.of_parameter[parameter]);
  rule.table = tables_[static_cast<std::size_t>(update.groups[rule.group].optimizer)];
  rule.decayed = update.groups[rule.group].decays_vectors || spec.update == UpdateKind::decayed;
  rule.rows = static_cast<std::uint64_t>(spec.rows());
  rule.columns = static_cast<std::uint64_t>(spec.row_elements());
  const placement::OptimizerFacts& optimizer = update.optimizer_of(parameter);
  for (std::size_t i = 0; i < optimizer.slots.size(); i++) {
    if (optimizer.per_row(i)) rule.row_columns.push_back(i);
  }
  rule.heads = spec.heads;
  find_reductions(rule, parameter);
  return rule;
}

void TileUpdate::find_reductions(Rule& rule, int parameter) const {
  for (std::uint32_t i = 0; i < rule.table->reduction_count; i++) {
    auto kind = static_cast<placement::ReductionKind>(placement::reduction_index(rule.table->reductions[i]));
    const placement::Reduction* found = placement_.reductions.find(kind, parameter);
    if (found == nullptr) continue;
    rule.reductions[i] = memory_.reductions.data() + found->first;
    rule.reduction_counts[i] = static_cast<std::uint32_t>(found->count);
  }
}

namespace {

/// What a plugin is told of the parameter besides its elements.
void describe_rows(const model_spec::HeadRows& heads, GanymedeChunk& plugin) {
  using Role = model_spec::HeadRows::Role;
  plugin.role = heads.role == Role::query ? GANYMEDE_QUERY : heads.role == Role::key ? GANYMEDE_KEY : 0;
  plugin.query_heads = static_cast<std::uint32_t>(heads.query_heads);
  plugin.key_heads = static_cast<std::uint32_t>(heads.key_heads);
  plugin.rows_per_head = static_cast<std::uint32_t>(heads.rows);
}

}  // namespace

void TileUpdate::begin(const step_protocol::DecisionRecord& record, Scope scope) {
  scope_ = scope;
  step_ = record.step;
  for (std::size_t group = 0; group < values_.size(); group++) {
    StepValues& values = values_[group];
    if (values.step().step != record.updates) values = StepValues(tables_, placement_.update, group, record);
  }
}

void TileUpdate::begin_chunk(ChunkCall& call, std::uint64_t index, float* redo) const {
  const placement::Chunk& chunk = placement_.chunks[index];
  const Rule& rule = rules_[chunk.parameter];
  bool all = scope_ == Scope::all, second = chunk.phase == Phase::master;
  call.chunk = index;
  call.bucket = chunk.bucket;
  call.from = 0;
  call.by_plugin = rule.moe_layer < 0;
  call.changes = all || (call.by_plugin && !second);
  call.publishes = publishes(chunk) && !by_blocks(memory_, chunk.bucket);
  call.slots = call.by_plugin && !second ? rule.table->slot_count : 0;  // a selection bias has no state
  call.master = memory_.master.data() + chunk.shard_offset;
  call.step = values_[rule.group].step();
  call.step.step -= rule.began;
  GanymedeChunk& plugin = call.call = {};
  plugin.size = sizeof(plugin);
  plugin.slots = rule.table->slot_count;
  plugin.decayed = rule.decayed ? 1 : 0;
  plugin.first = static_cast<std::uint64_t>(chunk.first);
  plugin.rows = rule.rows;
  plugin.columns = rule.columns;
  plugin.master = call.master;
  plugin.reductions = rule.reductions.data();
  plugin.reduction_counts = rule.reduction_counts.data();
  describe_rows(rule.heads, plugin);
  if (second) {
    plugin.orthogonal = memory_.returned.data() + placement_.matrix_offset(chunk);
    plugin.new_master = redo;
    return;
  }
  for (std::size_t i = 0; i < call.slots; i++) {
    call.kept[i] = memory_.state[i].data() + placement_.state_run(chunk, i).offset;
    call.state[i] = call.kept[i];
    call.new_state[i] = redo + (1 + i) * tile_elements;
  }
  for (std::size_t i : rule.row_columns) call.state[i] = call.new_state[i] = call.kept[i] = nullptr;
  plugin.gradient = memory_.gradients.data() + chunk.shard_offset;
  plugin.state = call.state.data();
  plugin.new_state = call.new_state.data();
  bool first = chunk.phase == Phase::state;
  (first ? plugin.to_orthogonalise : plugin.new_master) = redo;
  if (first) call.master = memory_.sent.data() + placement_.matrix_offset(chunk);
}

void TileUpdate::enter(ChunkCall& call, const Tile& tile, float* redo) const {
  bool there = call.chunk == tile.chunk && call.from == tile.from;
  if (there && call.call.count == static_cast<std::uint64_t>(tile.count)) return;
  if (call.chunk != tile.chunk) begin_chunk(call, tile.chunk, redo);
  std::int64_t way = tile.from - call.from;
  call.from = tile.from;
  call.master += way;
  call.call.first += static_cast<std::uint64_t>(way);
  call.call.count = static_cast<std::uint64_t>(tile.count);
  call.call.master = scope_ == Scope::all ? call.call.master + way : zeros_.data();
  if (call.call.orthogonal != nullptr) call.call.orthogonal += way;
  if (call.call.gradient != nullptr) call.call.gradient += way;
  for (std::size_t i = 0; i < call.slots; i++) {
    if (call.kept[i] != nullptr) call.state[i] = call.kept[i] += way;
  }
}

int TileUpdate::compute(ChunkCall& call, const Tile& tile, float* redo) const {
  if (!call.by_plugin) return compute_bias(tile, redo);
  const GanymedeOptimizer& table = *rules_[chunk_of(tile).parameter].table;
  return (call.call.orthogonal != nullptr ? table.apply_chunk : table.update_chunk)(&call.step, &call.call);
}

int TileUpdate::compute_bias(const Tile& tile, float* redo) const {
  const placement::Chunk& chunk = chunk_of(tile);
  std::int64_t experts = placement_.parameters[chunk.parameter].elements();
  auto counts = memory_.expert_counts.subspan(rules_[chunk.parameter].moe_layer * experts, experts);
  auto bias = memory_.master.subspan(chunk.shard_offset + tile.from, tile.count);
  update_selection_bias(counts, chunk.first + tile.from, bias_update_rate_, bias, {redo, bias.size()});
  return 0;
}

void TileUpdate::copy(const ChunkCall& call, const Tile& tile, const float* redo) const {
  fetch_next(call, tile.count);
  for (std::size_t i = 0; i < call.slots; i++) {
    if (call.kept[i] != nullptr) std::copy_n(redo + (1 + i) * tile_elements, tile.count, call.kept[i]);
  }
  if (scope_ == Scope::state) return;
  copy_row_values(tile);
  if (!call.publishes) {
    std::copy_n(redo, tile.count, call.master);
    return;
  }
  std::int64_t at = chunk_of(tile).shard_offset + tile.from;
  update_and_publish(memory_, placement_, call.bucket, at, {redo, static_cast<std::size_t>(tile.count)});
}

/// Of rows that begin in the tile, between the state and what travels: its old values go out in the first phase, what
/// the worker has brought back comes in in the second. Neither changes while its phase lasts, so there is no redo area.
void TileUpdate::copy_row_values(const Tile& tile) const {
  const placement::Chunk& chunk = chunk_of(tile);
  const std::vector<std::size_t>& columns = rules_[chunk.parameter].row_columns;
  if (columns.empty()) return;
  const placement::OwnedRange& range = placement_.owned[static_cast<std::size_t>(chunk.owned)];
  std::int64_t first = chunk.first + tile.from;
  std::int64_t before = placement_.rows_in(chunk.parameter, range.first, first - range.first).count;
  auto slots = static_cast<std::int64_t>(columns.size());
  for (std::int64_t i = 0; i < slots; i++) {
    std::size_t column = columns[static_cast<std::size_t>(i)];
    placement::StateRun run = placement_.state_run(range, first, tile.count, column);
    std::span<float> kept = memory_.state[column].subspan(run.offset, run.count);
    for (std::int64_t row = 0; row < run.count; row++) {
      std::int64_t at = range.row_values_offset + (before + row) * slots + i;
      if (chunk.phase == Phase::state) memory_.sent[at] = kept[row];
      if (chunk.phase == Phase::master) kept[row] = memory_.returned[at];
    }
  }
}

void TileUpdate::fail_of_plugin(const Tile& tile, int code) const {
  const placement::Chunk& chunk = chunk_of(tile);
  fail("optimizer plugin '{}' could not compute the update of {} in step {} (code {}): see the plugin's documentation",
       rules_[chunk.parameter].table->name, placement_.parameters[chunk.parameter].name, step_, code);
}

}  // namespace ganymede::optimizer
