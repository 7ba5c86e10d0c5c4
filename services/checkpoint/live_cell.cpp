#include "services/checkpoint/live_cell.h"

#include <algorithm>
#include <atomic>

#include "common/base/barrier.h"
#include "common/base/error.h"
#include "common/os/futex.h"
#include "common/step_protocol/snapshot_machine.h"

namespace ganymede::checkpoint {

using namespace step_protocol;

bool still_armed(const LiveCell& cell, std::uint64_t step) {
  return cell.control->snapshot.load(std::memory_order_acquire) == armed_word(step);
}

bool end_snapshot(const LiveCell& cell, std::uint64_t step) {
  std::uint64_t expected = armed_word(step);
  bool ended = cell.control->snapshot.compare_exchange_strong(expected, ended_word(step), std::memory_order_acq_rel);
  os::wake(cell.control->snapshot);
  return ended;
}

void read_chunk(const LiveCell& cell, std::uint64_t step, int chunk, std::span<float* const> outputs) {
  const placement::Chunk& range = cell.placement->chunks[chunk];
  if (outputs[0]) std::copy_n(cell.master.data() + range.shard_offset, range.count, outputs[0]);
  for (std::size_t column = 0; column < cell.state.size(); ++column) {
    if (!outputs[column + 1]) continue;
    std::copy_n(cell.state[column].data() + cell.placement->state_offset(range, column), range.count,
                outputs[column + 1]);
  }
  // Rule 19: if a store of the overwrite was seen above, the flag that was stored before it is seen below.
  full_barrier();
  std::uint64_t flag = cell.image_flags[chunk].load(std::memory_order_acquire);
  if (image_taken(flag, step)) {
    std::size_t image = image_slot(flag) * outputs.size() * placement::chunk_elements;
    GANYMEDE_CHECK(image + outputs.size() * placement::chunk_elements <= cell.images.size(),
                   "chunk {} claims an image outside the side segment", chunk);
    for (std::size_t row = 0; row < outputs.size(); ++row) {
      if (!outputs[row]) continue;
      std::copy_n(cell.images.data() + image + row * placement::chunk_elements, range.count, outputs[row]);
    }
  }
  os::store_and_wake(cell.read_marks[chunk], step);
}

namespace {

/// What is not stored, the writer need not save either.
void mark_others(const LiveCell& cell, std::uint64_t step) {
  for (std::size_t chunk = 0; chunk < cell.placement->chunks.size(); ++chunk) {
    if (!is_stored(*cell.placement, cell.placement->chunks[chunk])) os::store_and_wake(cell.read_marks[chunk], step);
  }
}

/// The master and each state slot of one value; matrices have chunks of their own for the two.
void read_value(const LiveCell& cell, std::uint64_t step, const PlannedValue& planned,
                std::vector<ValueBuffer>& values) {
  bool apart = !planned.state_chunks.empty();
  std::int64_t done = 0;
  for (std::size_t i = 0; i < planned.chunks.size(); ++i) {
    std::vector<float*> outputs(1 + cell.state.size(), nullptr), master = outputs;
    for (std::size_t row = 0; row < values.size(); ++row) outputs[row] = values[row].data().data() + done;
    if (apart) {
      std::swap(master[0], outputs[0]);
      read_chunk(cell, step, planned.state_chunks[i], outputs);
      read_chunk(cell, step, planned.chunks[i], master);
    } else {
      read_chunk(cell, step, planned.chunks[i], outputs);
    }
    done += cell.placement->chunks[planned.chunks[i]].count;
  }
}

/// "master", then the state slots of the parameter's optimizer.
std::vector<std::string> slots_of(const placement::Placement& placement, int parameter) {
  std::vector<std::string> slots = placement.update.optimizer_of(parameter).slots;
  slots.insert(slots.begin(), master_slot);
  return slots;
}

}  // namespace

bool read_snapshot(const LiveCell& cell, std::uint64_t step, const std::vector<PlannedValue>& plan, PartWriter& writer,
                   const std::function<bool()>& go_on) {
  mark_others(cell, step);
  for (const PlannedValue& planned : plan) {
    if (!go_on() || !still_armed(cell, step)) return false;
    std::size_t held = 1 + cell.placement->slots_of(planned.parameter);
    std::vector<ValueBuffer> values(held, ValueBuffer(static_cast<std::size_t>(planned.count)));
    read_value(cell, step, planned, values);
    const model_spec::ParameterSpec& parameter = cell.placement->parameters[planned.parameter];
    writer.add(parameter.name, parameter.shape, planned.first, slots_of(*cell.placement, planned.parameter), values);
  }
  return still_armed(cell, step);
}

}  // namespace ganymede::checkpoint
