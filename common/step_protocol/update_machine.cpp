#include "common/step_protocol/update_machine.h"

#include "common/base/error.h"
#include "common/step_protocol/snapshot_machine.h"

namespace ganymede::step_protocol {
namespace {

/// Rule 18: armed once, after `committed` is complete and before the first copy of the step after it. The record
/// slot may already hold the next record, which repeats the order in `snapshot_before`.
bool must_arm(const UpdateWords& words, std::uint64_t committed) {
  bool ordered = words.decided_step == committed ? words.record_snapshot_after : words.record_snapshot_before;
  return ordered && snapshot_step(words.snapshot) < committed;
}

}  // namespace

UpdateAction next_action(const UpdateState& state, const UpdateWords& words, std::uint64_t chunks) {
  GANYMEDE_CHECK(chunks > 0, "a cell without chunks cannot take part in a step");
  std::uint64_t committed = committed_step(words.chunks_done, chunks);  // rule 12
  std::uint64_t chunk = words.chunks_done % chunks;
  if (words.decided_step < committed || words.decided_step > committed + 1) {  // rule 6
    fail("step {} is decided but step {} is committed, which no run reaches; start again from the last checkpoint",
         words.decided_step, committed);
  }
  if (state.stage == UpdateStage::fresh && chunk == 0 && must_arm(words, committed)) {
    return {UpdateActionKind::arm_snapshot, committed, 0};
  }
  if (words.decided_step == committed) {
    if (chunk != 0) {
      fail("{} chunks of step {} are counted before it was decided; start again from the last checkpoint", chunk,
           committed + 1);
    }
    return {UpdateActionKind::await_decision, committed + 1, 0};
  }
  return {state.stage == UpdateStage::fresh ? UpdateActionKind::update : UpdateActionKind::count, committed + 1, chunk};
}

UpdateState after(const UpdateState& state, const UpdateAction& action) {
  switch (action.kind) {
    case UpdateActionKind::await_decision:
    case UpdateActionKind::arm_snapshot:
      return state;
    case UpdateActionKind::update:
      return {UpdateStage::updated};
    case UpdateActionKind::count:
      return {UpdateStage::fresh};
  }
  impossible(__FILE__, __LINE__, "unknown action of an update");
}

}  // namespace ganymede::step_protocol
