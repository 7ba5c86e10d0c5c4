#include <signal.h>

#include <algorithm>
#include <utility>

#include "common/base/log.h"
#include "launcher/supervisor/crew.h"

/// Optimizer servers of a crew beside those in force.
namespace ganymede::launcher {

void Crew::start_standby(int rank, std::uint64_t epoch) {
  Standby standby{.process = make({service::Kind::optimizer, rank, epoch}), .superseded = false, .since = 0};
  standby.process->start();
  beside_.push_back(std::move(standby));
}

ServiceProcess* Crew::standby_of(int rank) {
  for (const Standby& one : beside_)
    if (!one.superseded && one.process->id().rank == rank) return one.process.get();
  return nullptr;
}

ServiceProcess* Crew::standby_with(int pid) {
  for (const Standby& one : beside_)
    if (!one.superseded && one.process->alive() && one.process->pid() == pid) return one.process.get();
  return nullptr;
}

void Crew::promote(int rank) {
  auto standby = std::find_if(beside_.begin(), beside_.end(),
                              [&](const Standby& one) { return !one.superseded && one.process->id().rank == rank; });
  GANYMEDE_CHECK(standby != beside_.end(), "rank {} has no standby optimizer server", rank);
  auto service = std::find_if(services_.begin(), services_.end(), [&](const auto& one) {
    return one->id().kind == service::Kind::optimizer && one->id().rank == rank;
  });
  std::swap(*service, standby->process);
  log::info("{} is in force", (*service)->id().text());
  ServiceProcess& before = *standby->process;
  before.cancel_restart();
  standby->superseded = true;  // its end may be what is being looked at: watch() forgets it
  standby->since = now_seconds();
  (*service)->run_from_now_on(command_of((*service)->id()));  // what was ordered for its place meanwhile
  if (!(*service)->alive()) (*service)->start();
}

void Crew::end_standbys(const std::string& why) {
  std::erase_if(beside_, [](const Standby& one) { return !one.superseded && !one.process->alive(); });
  for (Standby& one : beside_)
    if (!one.superseded) one.process->signal(SIGKILL, why);
}

bool Crew::is_beside(const ServiceProcess& process) const {
  return std::any_of(beside_.begin(), beside_.end(), [&](const Standby& one) { return one.process.get() == &process; });
}

bool Crew::any_beside() const {
  return std::any_of(beside_.begin(), beside_.end(), [](const Standby& one) { return one.process->alive(); });
}

}  // namespace ganymede::launcher
