#include "common/plan/pool_meter.h"

#include <algorithm>

namespace ganymede::plan {

PoolMeter::PoolMeter(const StepPlan& plan) : plan_(plan), complete_(plan.operations.size(), false) {
  take_what_has_its_turn();
}

void PoolMeter::take_what_has_its_turn() {
  const auto& operations = plan_.operations;
  while (turn_ < operations.size()) {
    while (freed_up_to_ < turn_ && (operations[freed_up_to_].frees.empty() || complete_[freed_up_to_])) ++freed_up_to_;
    if (freed_up_to_ < turn_) return;
    for (int b : operations[turn_].takes) {
      if (plan_.buffers[b].kind != BufferKind::arena) alive_ += plan_.buffers[b].bytes;
    }
    peak_ = std::max(peak_, alive_);
    ++turn_;
  }
}

void PoolMeter::complete(int operation) {
  for (int b : plan_.operations[operation].frees) {
    if (plan_.buffers[b].kind != BufferKind::arena) alive_ -= plan_.buffers[b].bytes;
  }
  complete_[operation] = true;
  take_what_has_its_turn();
}

}  // namespace ganymede::plan
