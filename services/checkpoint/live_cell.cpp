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
    placement::StateRun run = cell.placement->state_run(range, column);
    std::copy_n(cell.state[column].data() + run.offset, run.count, outputs[column + 1]);
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
      std::int64_t count = row == 0 ? range.count : cell.placement->state_run(range, row - 1).count;
      std::copy_n(cell.images.data() + image + row * placement::chunk_elements, count, outputs[row]);
    }
  }
  os::store_and_wake(cell.read_marks[chunk], step);
}

void mark_others(const LiveCell& cell, std::uint64_t step) {
  for (std::size_t chunk = 0; chunk < cell.placement->chunks.size(); ++chunk) {
    if (!is_stored(*cell.placement, cell.placement->chunks[chunk])) os::store_and_wake(cell.read_marks[chunk], step);
  }
}

namespace {

/// What one part of a checkpoint has of consecutive elements of one parameter: a value for each of its slots.
struct ReadValues {
  std::vector<std::string> slots;  // "master", then the state slots of the parameter's optimizer
  std::vector<bool> per_row;
  std::vector<ValueBuffer> values;
  placement::ParameterRows rows;  // that begin in the elements
};

ReadValues room_for(const placement::Placement& placement, const PlannedValue& planned) {
  const placement::OptimizerFacts& optimizer = placement.update.optimizer_of(planned.parameter);
  ReadValues read;
  read.slots = optimizer.slots;
  read.slots.insert(read.slots.begin(), master_slot);
  read.rows = placement.rows_in(planned.parameter, planned.first, planned.count);
  for (std::size_t i = 0; i < read.slots.size(); ++i) {
    read.per_row.push_back(i > 0 && optimizer.per_row(i - 1));
    read.values.emplace_back(static_cast<std::size_t>(read.per_row[i] ? read.rows.count : planned.count));
  }
  return read;
}

/// Matrices have chunks of their own for what the first phase of an update writes, and for the master and per-row
/// slots, which the second writes.
void read_value(const LiveCell& cell, std::uint64_t step, const PlannedValue& planned, ReadValues& read) {
  bool apart = !planned.state_chunks.empty();
  std::int64_t done = 0, rows_done = 0;
  for (std::size_t i = 0; i < planned.chunks.size(); ++i) {
    const placement::Chunk& chunk = cell.placement->chunks[planned.chunks[i]];
    std::vector<float*> outputs(1 + cell.state.size(), nullptr), second = outputs;
    for (std::size_t row = 0; row < read.values.size(); ++row) {
      float* to = read.values[row].data().data() + (read.per_row[row] ? rows_done : done);
      (apart && (row == 0 || read.per_row[row]) ? second : outputs)[row] = to;
    }
    if (apart) read_chunk(cell, step, planned.state_chunks[i], outputs);
    read_chunk(cell, step, planned.chunks[i], apart ? second : outputs);
    done += chunk.count;
    rows_done += cell.placement->rows_in(chunk.parameter, chunk.first, chunk.count).count;
  }
}

/// Elements and rows have keys of their own; a part in which no row begins has none of those.
void write_value(ReadValues& read, const model_spec::ParameterSpec& parameter, std::int64_t first, PartWriter& writer) {
  for (bool per_row : {false, true}) {
    std::vector<std::string> slots;
    std::vector<ValueBuffer> values;
    for (std::size_t i = 0; i < read.slots.size(); ++i) {
      if (read.per_row[i] != per_row || (per_row && read.rows.count == 0)) continue;
      slots.push_back(read.slots[i]);
      values.push_back(std::move(read.values[i]));
    }
    if (!slots.empty()) writer.add(parameter.name, parameter.shape, per_row ? read.rows.first : first, slots, values);
  }
}

}  // namespace

bool read_snapshot(const LiveCell& cell, std::uint64_t step, const std::vector<PlannedValue>& plan, PartWriter& writer,
                   const std::function<bool()>& go_on) {
  for (const PlannedValue& planned : plan) {
    if (!go_on() || !still_armed(cell, step)) return false;
    ReadValues read = room_for(*cell.placement, planned);
    read_value(cell, step, planned, read);
    write_value(read, cell.placement->parameters[planned.parameter], planned.first, writer);
  }
  return still_armed(cell, step);
}

}  // namespace ganymede::checkpoint
