#include "services/optimizer/loading.h"

#include <algorithm>

#include "common/base/deadline.h"
#include "common/base/log.h"
#include "common/base/text.h"
#include "common/model_spec/model_spec.h"
#include "common/os/futex.h"
#include "services/optimizer/operations.h"
#include "services/optimizer/working_copy.h"

namespace ganymede::optimizer {
namespace {

constexpr double restore_seconds = 3600;  // a checkpoint of a node comes from a shared file system in minutes

bool await_restored(service::Context& context, std::uint64_t step, const CellMemory& memory) {
  log::info("waiting for the checkpoint service to restore step {}", step);
  context.at(operation::loading, 0, "waiting for the checkpoint");
  auto ready = [](std::uint64_t value) { return value == 1; };
  return context.wait(memory.control->restored, ready, {}, Deadline::after_seconds(restore_seconds),
                      "the checkpoint service to restore master and state");
}

}  // namespace

void fill_initial(const placement::Placement& placement, std::uint64_t seed, const CellMemory& memory) {
  std::fill(memory.master.begin(), memory.master.end(), 0.0f);
  for (const std::span<float>& slot : memory.state) std::fill(slot.begin(), slot.end(), 0.0f);
  for (const placement::OwnedRange& range : placement.owned) {
    model_spec::initial_values(placement.parameters[range.parameter], seed, range.first,
                               memory.master.subspan(range.shard_offset, range.count));
  }
}

void publish_all(const placement::Placement& placement, std::uint64_t step, const CellMemory& memory) {
  for (std::size_t i = 0; i < placement.buckets.size(); i++) {
    auto bucket = static_cast<int>(i);
    std::int64_t first = placement.buckets[i].shard_offset, count = placement.buckets[i].shard_elements();
    if (by_blocks(memory, bucket)) {
      refuse_non_finite(placement, publish_blocks(memory, placement, bucket, first, count), step);
    } else {
      publish(memory, placement, bucket, first, memory.master.subspan(first, count));
    }
  }
  finish_publishing();
  for (std::size_t i = 0; i < placement.buckets.size(); i++) os::store_and_wake(memory.working_copy_ready[i], step);
}

bool load_state(service::Context& context, const placement::Placement& placement, const CellMemory& memory) {
  step_protocol::ControlBlock& control = *memory.control;
  std::uint64_t step = control.load_step.load(std::memory_order_acquire);
  if (control.state_ready.load(std::memory_order_acquire) == 1) {
    std::uint64_t done = memory.words->chunks_done.load(std::memory_order_acquire), chunks = placement.chunks.size();
    log::info("going on after step {} and {} of {} chunks", done / chunks, done % chunks, chunks);
    return true;
  }
  auto began = Clock::now();
  if (step > 0) {
    if (!await_restored(context, step, memory)) return false;
    log::info("step {} is restored after {}", step, human_seconds(seconds_since(began)));
  } else {
    context.at(operation::loading, 0, "drawing initial values");
    fill_initial(placement, context.config().run.seed, memory);
    log::info("drew initial values of {} elements from seed {} in {}", with_commas(placement.shard_elements),
              context.config().run.seed, human_seconds(seconds_since(began)));
  }
  publish_all(placement, step, memory);
  os::store_and_wake(control.state_ready, 1);
  log::info("state of step {} is ready", step);
  return true;
}

}  // namespace ganymede::optimizer
