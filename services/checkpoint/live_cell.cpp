#include "services/checkpoint/live_cell.h"

#include <algorithm>
#include <atomic>

#include "common/base/error.h"
#include "common/os/barrier.h"
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
  std::copy_n(cell.master.data() + range.shard_offset, range.count, outputs[0]);
  for (std::size_t slot = 0; slot < cell.state.size(); ++slot) {
    std::copy_n(cell.state[slot].data() + range.shard_offset, range.count, outputs[slot + 1]);
  }
  // Rule 19: if a store of the overwrite was seen above, the flag that was stored before it is seen below.
  os::full_barrier();
  std::uint64_t flag = cell.image_flags[chunk].load(std::memory_order_acquire);
  if (image_taken(flag, step)) {
    std::size_t image = image_slot(flag) * outputs.size() * placement::chunk_elements;
    GANYMEDE_CHECK(image + outputs.size() * placement::chunk_elements <= cell.images.size(),
                   "chunk {} claims an image outside the side segment", chunk);
    for (std::size_t slot = 0; slot < outputs.size(); ++slot) {
      std::copy_n(cell.images.data() + image + slot * placement::chunk_elements, range.count, outputs[slot]);
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

}  // namespace

bool read_snapshot(const LiveCell& cell, std::uint64_t step, const std::vector<PlannedValue>& plan, PartWriter& writer,
                   const std::function<bool()>& go_on) {
  mark_others(cell, step);
  std::size_t slots = 1 + cell.state.size();
  std::vector<float*> outputs(slots);
  for (const PlannedValue& planned : plan) {
    if (!go_on() || !still_armed(cell, step)) return false;
    std::vector<ValueBuffer> values(slots, ValueBuffer(static_cast<std::size_t>(planned.count)));
    std::int64_t done = 0;
    for (int chunk : planned.chunks) {
      for (std::size_t slot = 0; slot < slots; ++slot) outputs[slot] = values[slot].data().data() + done;
      read_chunk(cell, step, chunk, outputs);
      done += cell.placement->chunks[chunk].count;
    }
    const model_spec::ParameterSpec& parameter = cell.placement->parameters[planned.parameter];
    writer.add(parameter.name, parameter.shape, planned.first, values);
  }
  return still_armed(cell, step);
}

}  // namespace ganymede::checkpoint
