#include "common/base/barrier.h"
#include "common/base/error.h"
#include "common/base/log.h"
#include "common/base/text.h"
#include "common/step_protocol/snapshot_machine.h"
#include "services/checkpoint/checkpoint_service.h"
#include "services/checkpoint/manifests.h"

/// What a checkpoint service does when the world is left: its workers have ended, and the newest step goes to disk
/// although no record orders it; for replicas on lost nodes as well, which held the same.
namespace ganymede::checkpoint {

using namespace step_protocol;

bool CheckpointService::rescue_is_due() const {
  std::uint64_t step = cell_.control->rescue_step.load(std::memory_order_acquire);
  return step != 0 && step != rescued_;
}

/// True when it did something.
bool CheckpointService::rescue() {
  if (!rescue_is_due()) return false;
  std::uint64_t step = cell_.control->rescue_step.load(std::memory_order_acquire);
  try {
    follow_epoch();
    if (!arm_for_rescue(step)) return false;
    save_for_rescue(step);
  } catch (const Error& error) {
    give_up(step, error.what());
  }
  rescued_ = step;
  return true;
}

/// Once the optimizer server has committed the step: nothing overwrites it then, for want of workers. The optimizer
/// server does not arm a step that is armed or ended. What a predecessor has read counts for nothing. Where the
/// launcher has thought better of it and workers live again, this is a snapshot like any other: it is armed before the
/// next step is looked for.
bool CheckpointService::arm_for_rescue(std::uint64_t step) {
  ControlBlock& control = *cell_.control;
  std::uint64_t decided = control.decided_step.load(std::memory_order_acquire);
  std::uint64_t loaded = control.load_step.load(std::memory_order_acquire);
  if (step <= loaded) fail("Step {} is asked for, but the cells were loaded with step {}.", step, loaded);
  if (decided != step) fail("Rank {} has decided step {}, and others step {}.", context_.rank(), decided, step);
  std::uint64_t done = service::epoch_control(context_, epoch_).words->chunks_done.load(std::memory_order_acquire);
  if (committed_step(done, cell_.placement->chunks.size()) != step) return false;
  std::uint64_t word = control.snapshot.load(std::memory_order_acquire);
  if (is_armed(word)) return false;
  for (Word& mark : cell_.read_marks) mark.store(0, std::memory_order_release);
  if (!control.snapshot.compare_exchange_strong(word, armed_word(step))) return false;
  full_barrier();
  bool stands = control.decided_step.load() == step && control.rescue_step.load() == step;
  if (!stands) end_snapshot(cell_, step);
  return stands;
}

void CheckpointService::save_for_rescue(std::uint64_t step) {
  auto began = Clock::now();
  std::uint64_t replicas = cell_.control->rescue_replicas.load(std::memory_order_acquire);
  for (int replica = 0; replicas >> replica != 0; ++replica) {
    if ((replicas >> replica & 1) == 0) continue;
    int rank = cell_.placement->replica_ranks.at(static_cast<std::size_t>(replica));
    PartStore lost(part_folder(settings_.checkpoints, rank), settings_.reached);
    PartRecord record = part_for_rescue(step, replica, lost);
    reports_.part_durable(step, rank, record.bytes(), record.hash());
    log::info("part of step {} of rank {}, which is lost: {}", step, rank,
              human_bytes(static_cast<double>(record.bytes())));
  }
  PartRecord own = part_for_rescue(step, cell_.placement->replica, store());
  publish(step, own, began);
  log::info("step {} is saved from memory in {}", step, human_seconds(seconds_since(began)));
}

/// One that this launch has made durable stands: a manifest may name it already.
PartRecord CheckpointService::part_for_rescue(std::uint64_t step, int replica, PartStore& to) {
  std::optional<PartRecord> record = to.record(step);
  if (!record || record->job != context_.job()) record = write_part(step, replica, to);
  if (!record) fail("The snapshot of step {} was cancelled.", step);
  return *record;
}

}  // namespace ganymede::checkpoint
