#include "services/worker/engine/current_operations.h"

namespace ganymede::worker {
namespace {

auto lane_of(const plan::Operation& operation) { return static_cast<std::size_t>(operation.lane); }

/// An operation stays where it is as long as its plan.
std::uint64_t key_of(const plan::Operation& operation) { return reinterpret_cast<std::uintptr_t>(&operation); }

thread_local std::optional<std::size_t> own_lane;

}  // namespace

void CurrentOperations::started(const plan::Operation& operation) {
  std::lock_guard lock(mutex_);
  own_lane = lane_of(operation);
  lanes_[*own_lane] = {&operation, ++begun_, service::Stopwatch()};
  show();
}

void CurrentOperations::ended(const plan::Operation& operation) {
  std::lock_guard lock(mutex_);
  Lane& lane = lanes_[lane_of(operation)];
  times_.took(key_of(operation), lane.watch->taken());
  lane = {};
  own_lane.reset();
  show();
}

void CurrentOperations::waits(bool begins) {
  if (!own_lane) return;
  std::lock_guard lock(mutex_);
  Lane& lane = lanes_[*own_lane];
  begins ? lane.watch->pause() : lane.watch->go_on();
  show();
}

void CurrentOperations::give_up() {
  std::lock_guard lock(mutex_);
  given_up_ = true;
  plan_({});
}

const CurrentOperations::Lane* CurrentOperations::choose() const {
  const Lane* chosen = nullptr;
  for (const Lane& lane : lanes_) {
    if (lane.operation == nullptr) continue;
    if (chosen != nullptr) {
      bool works = lane.works();
      bool better = works != chosen->works() ? works : works == (lane.began > chosen->began);
      if (!better) continue;
    }
    chosen = &lane;
  }
  return chosen;
}

void CurrentOperations::show() {
  const Lane* chosen = choose();
  if (chosen == nullptr) {
    shown_ = nullptr;
    return plan_({});
  }
  if (chosen->operation == shown_ && chosen->works() == shown_works_) return;
  shown_ = chosen->operation;
  shown_works_ = chosen->works();
  show_(*shown_);
  if (shown_works_ && !given_up_) plan_(times_.of(key_of(*shown_)));
}

}  // namespace ganymede::worker
