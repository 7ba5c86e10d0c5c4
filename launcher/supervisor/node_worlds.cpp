#include "common/base/log.h"
#include "launcher/supervisor/node_supervisor.h"

/// The part of a node's supervisor that leaves a world, so that it forms again.
namespace ganymede::launcher {

/// The world is left; before that, what its memory holds goes to disk.
void NodeSupervisor::rescue(const coordinator::NodeWishes& wishes) {
  if (is_ending()) return;
  if (phase_ == Phase::working) {
    log::info("the memory of the world is saved: its workers are ended");
    phase_ = Phase::rescuing;
    crew_.end_workers("the world is left");
  }
  if (wishes.rescue && !crew_.any_worker_alive()) parts_.cells.order_rescue(*wishes.rescue);
}

/// A coordinator that died while it saved the world comes back and wants the world to go on.
void NodeSupervisor::work_again() {
  if (phase_ != Phase::rescuing || crew_.any_worker_alive()) return;
  parts_.cells.end_rescue();
  phase_ = Phase::working;
  crew_.start_workers();
}

/// The services end, and this node asks for its place in the next world; unless a person wants it to stop.
void NodeSupervisor::leave_world(const std::string& why) {
  if (phase_ == Phase::halting) return;
  log::info("{}", why);
  halt({ExitCode::can_go_on, ""}, false);
  outcome_.again = true;
}

}  // namespace ganymede::launcher
