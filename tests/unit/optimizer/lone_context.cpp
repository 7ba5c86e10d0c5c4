#include "tests/unit/optimizer/lone_context.h"

#include <algorithm>
#include <array>

#include "common/base/hash.h"
#include "common/os/futex.h"
#include "tests/support/tree.h"

namespace ganymede::optimizer {

std::string built_in_plugins() { return GANYMEDE_BINARY_DIR "/plugins"; }

void decide(LoneContext& context, const std::function<void(step_protocol::DecisionRecord&)>& edit) {
  step_protocol::ControlBlock& control = *context.control().block;
  std::ranges::fill(context.segment("gradients").span<float>("values"), 1.0f);
  step_protocol::DecisionRecord record;
  record.step = record.updates = control.decided_step.load() + 1;
  record.lr = 1e-2;
  record.group_count = 1;
  record.groups[0] = {1e-2, 0};
  record.hyper_count = 3;  // of AdamW: beta1, beta2, eps
  std::ranges::copy(std::array{0.9, 0.95, 1e-8}, record.hyper);
  record.optimizer_hash = context.facts.plugin_hash();
  record.counts_hash = hash64(std::as_bytes(context.control().expert_counts));
  edit(record);
  record.checksum = record.compute_checksum();
  control.record_of(record.step) = record;
  os::store_and_wake(control.decided_step, record.step);
}

}  // namespace ganymede::optimizer
