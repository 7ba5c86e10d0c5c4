#include <algorithm>

#include "common/base/error.h"
#include "common/base/log.h"
#include "common/step_protocol/snapshot_machine.h"
#include "services/checkpoint/checkpoint_service.h"
#include "services/checkpoint/manifests.h"

/// What a checkpoint service does with what its predecessor left.
namespace ganymede::checkpoint {

using namespace step_protocol;

bool CheckpointService::decided_last(std::uint64_t step) const {
  const DecisionRecord& record = cell_.control->record_of(step);
  return record.step == step && record.intact() && record.stop_after != 0;
}

/// What a predecessor left: a part that is on disk is reported again, the snapshot of the last step is done again
/// (nothing will overwrite it), any other is cancelled (rule 20). Parts of launches before this one are dropped.
void CheckpointService::recover() {
  std::uint64_t word = cell_.control->snapshot.load(std::memory_order_acquire), step = snapshot_step(word);
  std::uint64_t loaded = cell_.control->load_step.load(std::memory_order_acquire);
  std::vector<service::Manifest> manifests = service::read_manifests(settings_.checkpoints);
  auto manifest = std::find_if(manifests.begin(), manifests.end(), [&](auto& one) { return one.step == step; });
  bool committed = step > loaded && manifest != manifests.end();
  drop_unnamed_parts(settings_.checkpoints, store(), context_.job());
  std::optional<PartRecord> record = step > loaded ? store().record(step) : std::nullopt;
  if (record && record->job != context_.job()) record.reset();  // of a damaged checkpoint of an earlier launch
  if (committed) {
    end_snapshot(cell_, step);
    if (context_.rank() == 0) reports_.committed(step, manifest->bytes(), 0);
  } else if (record) {
    log::info("the part of step {} was complete: reported again", step);
    publish(step, *record, Clock::now());
  } else if (is_armed(word) && !decided_last(step)) {
    end_snapshot(cell_, step);
    log::warn("the snapshot of step {} was cancelled: the service was started again while it was read", step);
  }
}

/// A disk that cannot be used while the run goes on may be later: until then each snapshot fails, and training goes on.
/// False when it has to be tried again. Before the first step nothing is lost by giving up: throws Error.
bool CheckpointService::try_to_recover() {
  try {
    recover();
    return true;
  } catch (const Error& error) {
    const ControlBlock& control = *cell_.control;
    if (control.decided_step.load(std::memory_order_acquire) <= control.load_step.load(std::memory_order_acquire))
      throw;
    std::uint64_t word = control.snapshot.load(std::memory_order_acquire);
    store_.reset();
    if (is_armed(word)) {
      give_up(snapshot_step(word), error.what());
    } else if (!unusable_) {
      log::error("the checkpoint folder cannot be used now: {}", error.what());
    }
    unusable_ = true;
    return false;
  }
}

}  // namespace ganymede::checkpoint
