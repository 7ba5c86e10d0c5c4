#include <algorithm>

#include "common/base/log.h"
#include "launcher/supervisor/supervisor.h"

/// The part of the supervisor that ends a run whose work is done.
namespace ganymede::launcher {
namespace {

constexpr double time_to_leave = 5;  // seconds between the first worker that leaves and the last

/// A damaged one does not count: it is what a launch before this one left.
bool manifest_exists(std::uint64_t step) {
  auto manifests = service::read_manifests(service::checkpoint_folder);
  return std::any_of(manifests.begin(), manifests.end(), [step](const auto& one) { return one.step == step; });
}

}  // namespace

/// A worker leaves only when every rank has committed the last step (rule 7). So once one has left, a replacement of
/// another has nothing to do and nobody to meet.
bool Supervisor::wants_end_of(const ServiceId& id) {
  if (phase_ == Phase::finishing) return true;
  if (id.kind != service::Kind::worker || first_left_ == 0) return false;
  bool late = now_seconds() - first_left_ > time_to_leave;
  return late || crew_.at(id.kind, id.rank).signs.started > first_left_;
}

void Supervisor::note_leaving() {
  if (first_left_ == 0) first_left_ = now_seconds();
}

void Supervisor::worker_left(ServiceProcess& process) {
  process.finished = true;
  note_leaving();
  consider_finish();
}

void Supervisor::consider_finish() {
  if (phase_ != Phase::working || !crew_.workers_finished() || !nodes_.workers_finished()) return;
  if (draining_since_ == 0) draining_since_ = now_seconds();
  std::uint64_t last = parts_.cells.decided_step();
  if (manifest_exists(last)) last_committed_ = last;  // the message about it may have been lost
  if (last_committed_ && *last_committed_ >= last) finish();
}

void Supervisor::finish() {
  std::uint64_t last = parts_.cells.decided_step();
  // The reports of the last steps are lost when their worker is killed as the others leave.
  write_steps([&] {
    make_good(last + 1);
    if (!parts_.steps.write_waiting())
      fail("{} The lines of the last steps are lost; the same command goes on from the checkpoint of step {}.",
           parts_.steps.trouble(), last);
  });
  if (phase_ == Phase::halting) return;
  bool all = last >= static_cast<std::uint64_t>(parts_.config.run.steps);
  if (rescaling_ && !all) return leave_world(fmt::format("Step {} is safe.", last));
  outcome_ = {all ? ExitCode::done : ExitCode::can_go_on, ""};
  log::info("step {} is the last one and its checkpoint is committed; the services are asked to finish", last);
  phase_ = Phase::finishing;
  end_.finish(now_seconds(), parts_.config.launch.stop_timeout_seconds);
  consider_over();
}

}  // namespace ganymede::launcher
