#include "services/optimizer/chunk_update.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <span>
#include <string_view>

#include "common/base/error.h"
#include "services/optimizer/plugin.h"
#include "services/optimizer/selection_bias.h"
#include "services/optimizer/working_copy.h"

namespace ganymede::optimizer {
namespace {

using model_spec::UpdateKind;

/// Part `index` of `parts` of `count` elements, cut at cache lines.
std::pair<std::int64_t, std::int64_t> part_of(std::int64_t count, int index, int parts) {
  auto boundary = [&](int i) {
    std::int64_t at = count * i / parts;
    return i == parts ? count : at - at % placement::alignment;
  };
  return {boundary(index), boundary(index + 1)};
}

}  // namespace

StepValues::StepValues(const GanymedeOptimizer& plugin, const step_protocol::DecisionRecord& record) {
  std::vector<std::string_view> names;
  for (const auto& key : std::span(plugin.hyper_parameters, plugin.hyper_parameter_count)) names.emplace_back(key.name);
  if (names.size() != record.hyper_count) {
    fail("step {} was decided with {} hyper-parameters, but optimizer '{}' has {}: go on with the run's own plugin",
         record.step, record.hyper_count, plugin.name, names.size());
  }
  for (std::size_t i = 0; i < names.size(); i++) {
    auto place = std::count_if(names.begin(), names.end(), [&](std::string_view other) { return other < names[i]; });
    hyper_[i] = record.hyper[place];
  }
  step_.size = sizeof(step_);
  step_.hyper_count = plugin.hyper_parameter_count;
  step_.step = record.step;
  step_.lr = record.lr;
  step_.weight_decay = record.weight_decay;
  step_.gradient_scale = record.clip_factor;
}

GanymedeStep StepValues::step() const {
  GanymedeStep step = step_;
  step.hyper = hyper_.data();
  return step;
}

ChunkUpdate::ChunkUpdate(const placement::Placement& placement, const GanymedeOptimizer& plugin,
                         const CellMemory& memory, double bias_update_rate, int threads)
    : placement_(placement),
      plugin_(plugin),
      memory_(memory),
      bias_update_rate_(bias_update_rate),
      team_(std::max(threads, 1)) {
  int layers = 0;
  for (const model_spec::ParameterSpec& parameter : placement.parameters) {
    moe_layer_.push_back(parameter.update == UpdateKind::selection_bias ? layers++ : -1);
  }
}

float* ChunkUpdate::redo(std::size_t slot) const { return memory_.redo.data() + slot * placement::chunk_elements; }

bool ChunkUpdate::by_plugin(const placement::Chunk& chunk) const { return moe_layer_[chunk.parameter] < 0; }

void ChunkUpdate::compute(const placement::Chunk& chunk, const step_protocol::DecisionRecord& record) {
  if (!by_plugin(chunk)) return compute_bias(chunk);
  if (values_.step().step != record.step) values_ = StepValues(plugin_, record);
  GanymedeStep step = values_.step();
  std::atomic<int> result{0};
  team_.run([&](int piece) {
    auto [from, to] = part_of(chunk.count, piece, team_.pieces());
    int part = from == to ? 0 : compute_part(chunk, step, from, to);
    if (part != 0) result.store(part, std::memory_order_relaxed);
  });
  if (result.load() == 0) return;
  fail("optimizer plugin '{}' could not compute the update of {} in step {} (code {}): see the plugin's documentation",
       plugin_.name, placement_.parameters[chunk.parameter].name, record.step, result.load());
}

int ChunkUpdate::compute_part(const placement::Chunk& chunk, const GanymedeStep& step, std::int64_t from,
                              std::int64_t to) const {
  std::array<const float*, most_slots> state;
  std::array<float*, most_slots> new_state;
  std::int64_t at = chunk.shard_offset + from;
  for (std::size_t i = 0; i < memory_.state.size(); i++) {
    state[i] = memory_.state[i].data() + at;
    new_state[i] = redo(1 + i) + from;
  }
  GanymedeChunk call{};
  call.size = sizeof(call);
  call.slots = static_cast<std::uint32_t>(memory_.state.size());
  call.count = static_cast<std::uint64_t>(to - from);
  call.decayed = placement_.parameters[chunk.parameter].update == UpdateKind::decayed ? 1 : 0;
  call.gradient = memory_.gradients.data() + at;
  call.master = memory_.master.data() + at;
  call.state = state.data();
  call.new_master = redo(0) + from;
  call.new_state = new_state.data();
  return plugin_.update_chunk(&step, &call);
}

void ChunkUpdate::compute_bias(const placement::Chunk& chunk) {
  std::int64_t experts = placement_.parameters[chunk.parameter].elements();
  auto counts = memory_.expert_counts.subspan(moe_layer_[chunk.parameter] * experts, experts);
  update_selection_bias(counts, chunk.first, bias_update_rate_, memory_.master.subspan(chunk.shard_offset, chunk.count),
                        {redo(0), static_cast<std::size_t>(chunk.count)});
}

void ChunkUpdate::copy(const placement::Chunk& chunk, std::uint64_t step) {
  bool blocks = by_blocks(memory_, chunk.bucket);
  std::size_t slots = by_plugin(chunk) ? memory_.state.size() : 0;  // a selection bias has no state
  team_.run([&](int piece) {
    auto [from, to] = part_of(chunk.count, piece, team_.pieces());
    std::int64_t at = chunk.shard_offset + from, count = to - from;
    std::copy_n(redo(0) + from, count, memory_.master.data() + at);
    for (std::size_t i = 0; i < slots; i++) std::copy_n(redo(1 + i) + from, count, memory_.state[i].data() + at);
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
