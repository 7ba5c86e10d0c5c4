#include "services/optimizer/chunk_update.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <span>
#include <utility>

#include "common/base/error.h"
#include "services/optimizer/migration.h"
#include "services/optimizer/plugin.h"
#include "services/optimizer/selection_bias.h"
#include "services/optimizer/working_copy.h"

namespace ganymede::optimizer {
namespace {

using model_spec::UpdateKind;
using placement::Phase;

/// Part `index` of `parts` of `count` elements, cut at cache lines.
std::pair<std::int64_t, std::int64_t> part_of(std::int64_t count, int index, int parts) {
  auto boundary = [&](int i) {
    std::int64_t at = count * i / parts;
    return i == parts ? count : at - at % placement::alignment;
  };
  return {boundary(index), boundary(index + 1)};
}

}  // namespace

ChunkUpdate::ChunkUpdate(const placement::Placement& placement, Tables tables, const CellMemory& memory,
                         double bias_update_rate, int threads)
    : placement_(placement),
      tables_(std::move(tables)),
      memory_(memory),
      bias_update_rate_(bias_update_rate),
      began_(placement.parameters.size()),
      zeros_(placement::chunk_elements),
      values_(placement.update.groups.size()),
      team_(std::max(threads, 1)) {
  int layers = 0;
  for (const model_spec::ParameterSpec& parameter : placement.parameters) {
    moe_layer_.push_back(parameter.update == UpdateKind::selection_bias ? layers++ : -1);
  }
  if (memory.began.empty()) return;
  EpochState state{&placement, tables_, memory.state, memory.began};
  for (std::size_t i = 0; i < began_.size(); i++) began_[i] = youngest_began(state, static_cast<int>(i));
}

float* ChunkUpdate::redo(std::size_t slot) const { return memory_.redo.data() + slot * placement::chunk_elements; }

bool ChunkUpdate::by_plugin(const placement::Chunk& chunk) const { return moe_layer_[chunk.parameter] < 0; }

const GanymedeOptimizer& ChunkUpdate::table_of(const placement::Chunk& chunk) const {
  const placement::UpdateGroups& update = placement_.update;
  return *tables_[static_cast<std::size_t>(update.groups[update.of_parameter[chunk.parameter]].optimizer)];
}

GanymedeStep ChunkUpdate::step_of(const placement::Chunk& chunk, const step_protocol::DecisionRecord& record) {
  auto group = static_cast<std::size_t>(placement_.update.of_parameter[chunk.parameter]);
  StepValues& values = values_[group];
  if (values.step().step != record.updates) values = StepValues(tables_, placement_.update, group, record);
  GanymedeStep step = values.step();
  step.step -= began_[static_cast<std::size_t>(chunk.parameter)];
  return step;
}

bool ChunkUpdate::changes(const placement::Chunk& chunk, Scope scope) const {
  if (chunk.parameter < 0) return false;
  return scope == Scope::all || (by_plugin(chunk) && chunk.phase != Phase::master);
}

void ChunkUpdate::compute(const placement::Chunk& chunk, const step_protocol::DecisionRecord& record, Scope scope) {
  if (!by_plugin(chunk)) return compute_bias(chunk);
  GanymedeStep step = step_of(chunk, record);
  std::atomic<int> result{0};
  team_.run([&](int piece) {
    auto [from, to] = part_of(chunk.count, piece, team_.pieces());
    int part = from == to ? 0 : compute_part(chunk, step, scope, from, to);
    if (part != 0) result.store(part, std::memory_order_relaxed);
  });
  if (result.load() == 0) return;
  fail("optimizer plugin '{}' could not compute the update of {} in step {} (code {}): see the plugin's documentation",
       table_of(chunk).name, placement_.parameters[chunk.parameter].name, record.step, result.load());
}

int ChunkUpdate::compute_part(const placement::Chunk& chunk, const GanymedeStep& step, Scope scope, std::int64_t from,
                              std::int64_t to) const {
  std::array<const float*, most_slots> state;
  std::array<float*, most_slots> new_state;
  const GanymedeOptimizer& table = table_of(chunk);
  const model_spec::ParameterSpec& parameter = placement_.parameters[chunk.parameter];
  bool decays_all = placement_.update.groups[placement_.update.of_parameter[chunk.parameter]].decays_vectors;
  GanymedeChunk call{};
  call.size = sizeof(call);
  call.slots = table.slot_count;
  call.count = static_cast<std::uint64_t>(to - from);
  call.decayed = decays_all || parameter.update == UpdateKind::decayed ? 1 : 0;
  call.first = static_cast<std::uint64_t>(chunk.first + from);
  call.rows = static_cast<std::uint64_t>(parameter.rows());
  call.columns = static_cast<std::uint64_t>(parameter.row_elements());
  call.master = (scope == Scope::all ? memory_.master.data() + chunk.shard_offset : zeros_.data()) + from;
  if (chunk.phase == Phase::master) {
    call.orthogonal = memory_.returned.data() + placement_.matrix_offset(chunk) + from;
    call.new_master = redo(0) + from;
    return table.apply_chunk(&step, &call);
  }
  for (std::size_t i = 0; i < table.slot_count; i++) {
    state[i] = memory_.state[i].data() + placement_.state_offset(chunk, i) + from;
    new_state[i] = redo(1 + i) + from;
  }
  call.gradient = memory_.gradients.data() + chunk.shard_offset + from;
  call.state = state.data();
  call.new_state = new_state.data();
  (chunk.phase == Phase::state ? call.to_orthogonalise : call.new_master) = redo(0) + from;
  return table.update_chunk(&step, &call);
}

void ChunkUpdate::compute_bias(const placement::Chunk& chunk) {
  std::int64_t experts = placement_.parameters[chunk.parameter].elements();
  auto counts = memory_.expert_counts.subspan(moe_layer_[chunk.parameter] * experts, experts);
  update_selection_bias(counts, chunk.first, bias_update_rate_, memory_.master.subspan(chunk.shard_offset, chunk.count),
                        {redo(0), static_cast<std::size_t>(chunk.count)});
}

void ChunkUpdate::copy(const placement::Chunk& chunk, std::uint64_t step, Scope scope) {
  bool all = scope == Scope::all, master = all && chunk.phase != Phase::state, sent = all && !master,
       blocks = master && by_blocks(memory_, chunk.bucket);
  bool state = chunk.phase != Phase::master && by_plugin(chunk);  // a selection bias has no state
  std::size_t slots = state ? placement_.slots_of(chunk.parameter) : 0;
  team_.run([&](int piece) {
    auto [from, to] = part_of(chunk.count, piece, team_.pieces());
    std::int64_t at = chunk.shard_offset + from, count = to - from;
    for (std::size_t i = 0; i < slots; i++) {
      std::copy_n(redo(1 + i) + from, count, memory_.state[i].data() + placement_.state_offset(chunk, i) + from);
    }
    if (sent) std::copy_n(redo(0) + from, count, memory_.sent.data() + placement_.matrix_offset(chunk) + from);
    if (!master) return;
    std::copy_n(redo(0) + from, count, memory_.master.data() + at);
    if (blocks) return;
    publish(memory_, placement_, chunk.bucket, at, {redo(0) + from, static_cast<std::size_t>(count)});
    finish_publishing();
  });
  if (blocks) publish_chunk_blocks(chunk, step);
}

/// When all of the chunk is in the master: a block may begin in another piece, or in the chunk before.
void ChunkUpdate::publish_chunk_blocks(const placement::Chunk& chunk, std::uint64_t step) {
  std::vector<wire::NonFinite> found(static_cast<std::size_t>(team_.pieces()));
  team_.run([&](int piece) {
    auto [from, to] = part_of(chunk.count, piece, team_.pieces());
    found[static_cast<std::size_t>(piece)] =
        publish_blocks(memory_, placement_, chunk.bucket, chunk.shard_offset + from, to - from);
  });
  for (const wire::NonFinite& one : found) refuse_non_finite(placement_, one, step);
}

}  // namespace ganymede::optimizer
