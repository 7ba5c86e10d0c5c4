#include <signal.h>

#include "common/base/log.h"
#include "common/base/text.h"
#include "launcher/supervisor/crew.h"

/// Restarts that a person asks for, and the programs that services run in the place of the installed ones.
namespace ganymede::launcher {
namespace {

constexpr double proof_seconds = 2;  // that a process has to work until its binary has proved itself

}  // namespace

void Crew::restart(const coordinator::RestartOrder& order) {
  ServiceProcess& process = at(order.kind, order.rank);
  if (!order.binary && !process.alive()) fail("The {} is not running now; it is being started.", process.id().text());
  std::string why = "restarted by request";
  if (order.binary) {
    binaries_.order(order.kind, order.rank, *order.binary);
    process.run_from_now_on(command_of(process.id()));
    why += " with " + binaries_.of(order.kind, order.rank).now.describe();
  }
  process.requested = process.alive();
  process.signal(SIGKILL, why);
}

void Crew::refuse(const coordinator::RestartOrder& order, const std::string& why) {
  binaries_.refuse(order.kind, order.rank, order.number, why);
}

bool Crew::take_fault_on_trial(const ServiceId& id, int pid, const std::string& text) {
  ServiceProcess& process = at(id.kind, id.rank);
  if (!process.is_current(pid) || !binaries_.of(id.kind, id.rank).trial) return false;
  log::error("{}, whose binary is on trial: {}", process.id().text(), text);
  process.fault = text;
  return true;
}

/// Whether a process that has ended was on trial. Then its end costs nothing of the budget of restarts: after a few of
/// them the service has the program before again.
bool Crew::ends_on_trial(ServiceProcess& process, const os::Ending& ending) {
  const ServiceId& id = process.id();
  if (process.requested || !binaries_.of(id.kind, id.rank).trial) return false;
  auto given_up = binaries_.died(id.kind, id.rank, process.fault.empty() ? ending.describe() : process.fault);
  if (!given_up) return true;
  log::error("{}", *given_up);
  terminal_.line(fmt::format("{}; see {}/{}.log and .out", *given_up, service::log_folder, id.stem()));
  process.run_from_now_on(command_of(id));
  return true;
}

void Crew::watch_trials(double now) {
  for (const auto& process : services_) {
    const ServiceId& id = process->id();
    bool works = process->alive() && process->signs.registered && now - process->came >= proof_seconds;
    if (!works || !process->killed_because.empty() || !binaries_.of(id.kind, id.rank).trial) continue;
    binaries_.prove(id.kind, id.rank);
    log::info("{} works with {}", id.text(), binaries_.of(id.kind, id.rank).now.describe());
  }
}

}  // namespace ganymede::launcher
