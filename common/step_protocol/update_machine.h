#pragma once

#include "common/step_protocol/control_block.h"

#include <cstdint>

/// The optimizer server's half of the protocol (rules 12, 18): what to do next is a pure function of the shared words
/// and of whether this process has seen the current span to its end. A span is a run of chunks of one bucket that are
/// updated together (tile_machine.h) and counted together; where it ends is a pure function of where it begins. A
/// successor starts with stage `fresh` and continues to the same bits.
namespace ganymede::step_protocol {

struct UpdateWords {
  std::uint64_t chunks_done = 0;
  std::uint64_t decided_step = 0;
  std::uint64_t snapshot = 0;
  bool record_snapshot_after = false;  // of record_of(decided_step)
  bool record_snapshot_before = false;
};

enum class UpdateStage : std::uint8_t { fresh, updated };

struct UpdateState {
  UpdateStage stage = UpdateStage::fresh;
};

enum class UpdateActionKind : std::uint8_t {
  await_decision,  // nothing to do until decided_step grows
  arm_snapshot,    // store snapshot = (step, armed) by compare-and-swap
  update,          // all tiles of the span that have to be (tile_machine.h)
  count,           // store chunks_done + chunks of the span
};

struct UpdateAction {
  UpdateActionKind kind = UpdateActionKind::await_decision;
  std::uint64_t step = 0;   // being applied
  std::uint64_t chunk = 0;  // first of the span, index within the step
};

/// The next action. `chunks` = chunks of a step on this cell (> 0). Throws Error when the words contradict one another
/// (damaged memory).
UpdateAction next_action(const UpdateState& state, const UpdateWords& words, std::uint64_t chunks);

/// The state after that action was carried out.
UpdateState after(const UpdateState& state, const UpdateAction& action);

}  // namespace ganymede::step_protocol
