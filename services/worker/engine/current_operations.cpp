#include "services/worker/engine/current_operations.h"

namespace ganymede::worker {
namespace {

auto lane_of(const plan::Operation& operation) { return static_cast<std::size_t>(operation.lane); }

}  // namespace

void CurrentOperations::started(const plan::Operation& operation) {
  std::lock_guard lock(mutex_);
  lanes_[lane_of(operation)] = {&operation, ++begun_};
  show();
}

void CurrentOperations::ended(const plan::Operation& operation) {
  std::lock_guard lock(mutex_);
  lanes_[lane_of(operation)] = {};
  show();
}

const plan::Operation* CurrentOperations::choose() const {
  const Lane* chosen = nullptr;
  for (const Lane& lane : lanes_) {
    if (lane.operation == nullptr) continue;
    bool meets = plan::meets_others(lane.operation->kind);
    if (chosen != nullptr) {
      bool chosen_meets = plan::meets_others(chosen->operation->kind);
      bool better = meets != chosen_meets ? !meets : meets == (lane.began < chosen->began);
      if (!better) continue;
    }
    chosen = &lane;
  }
  return chosen == nullptr ? nullptr : chosen->operation;
}

void CurrentOperations::show() {
  const plan::Operation* chosen = choose();
  if (chosen == nullptr || chosen == shown_) return;
  shown_ = chosen;
  show_(*chosen);
}

}  // namespace ganymede::worker
