#include <signal.h>

#include <algorithm>

#include "common/base/log.h"
#include "common/base/text.h"
#include "launcher/supervisor/crew.h"
#include "launcher/supervisor/log_tail.h"

/// How a crew is kept alive: signs of life, and replacements of what died.
namespace ganymede::launcher {
namespace {

constexpr int shown_log_lines = 8;
constexpr double clock_gap = 2;              // seconds without a look after which nobody is blamed for silence
constexpr double least_start_seconds = 60;   // a busy machine loads libtorch slowly
constexpr double last_words_seconds = 0.25;  // for the stacks of all threads
constexpr double own_end_seconds = 10;       // for a worker to give up by itself what waited for others for too long

/// Why a service has to be killed; empty when it is healthy.
std::string fault_of(const ServiceProcess& process, double now, const VitalLimits& limits) {
  switch (judge(process.signs, now, limits)) {
    case Verdict::healthy:
      break;
    case Verdict::never_came:
      return fmt::format("it did not register within {}", human_seconds(limits.start));
    case Verdict::silent:
      return fmt::format("it gave no sign of life for {}", human_seconds(limits.silence));
    case Verdict::stands_still:
      return fmt::format("it made no progress for {} ({})", human_seconds(limits.standstill), process.detail);
  }
  return "";
}

}  // namespace

ServiceProcess& Crew::current(const ServiceId& id, int pid) {
  if (ServiceProcess& process = at(id.kind, id.rank); process.is_current(pid)) return process;
  for (const Standby& one : beside_)
    if (id.kind == service::Kind::optimizer && one.process->is_current(pid)) return *one.process;
  fail("Process {} is not the {} that this launcher started.", pid, id.text());
}

void Crew::registered(const ServiceId& id, int pid) {
  ServiceProcess& process = current(id, pid);
  if (!process.signs.registered) log::info("{} registered", process.id().text());
  process.phase = ServicePhase::running;
  process.signs.registered = true;
  process.signs.heard = process.signs.advanced = process.signs.grown = now_seconds();
  notes_.back(id.text(), now_seconds());
  if (all_running()) notes_.back(launcher_process, now_seconds());
}

void Crew::heartbeat(const ServiceId& id, const fbs::Heartbeat& beat) {
  ServiceProcess& process = current(id, beat.pid());
  process.waits = beat.state() == fbs::ServiceState::waiting;
  process.detail = beat.detail()->str();
  hear(process.signs, now_seconds(), beat.progress(), process.waits);
}

void Crew::watch(double now) {
  double gap = now - watched_;
  if (gap > clock_gap)
    for (ServiceProcess* process : everyone()) forgive(process->signs, gap);
  watched_ = now;
  const auto& launch = config_.launch;
  VitalLimits limits{
      .start = std::max(least_start_seconds, launch.heartbeat_timeout_seconds),
      .silence = launch.heartbeat_timeout_seconds,
      .standstill = std::max(launch.heartbeat_timeout_seconds, launch.collective_timeout_seconds + own_end_seconds)};
  for (const auto& process : services_) look(*process, limits, now);
  for (const Standby& one : beside_) {
    VitalLimits own = limits;
    if (!one.superseded) own.standstill = launch.heartbeat_timeout_seconds;  // all of the run waits for a standby
    look(*one.process, own, now);
  }
  std::erase_if(beside_, [](const Standby& one) { return one.superseded && !one.process->alive(); });
  for (Standby& one : beside_) {
    bool late = one.superseded && now - one.since > own_end_seconds && one.process->killed_because.empty();
    if (late) one.process->signal(SIGKILL, "another optimizer has taken its place");
  }
  memory_.killed_lately(now);
  if (auto warning = memory_.look(now, [this] { return names_by_process(); })) {
    log::warn("{}", *warning);
    terminal_.line(*warning);
  }
}

/// Kills one that shows no signs of life, a moment after all have written what they are at.
void Crew::look(ServiceProcess& process, const VitalLimits& limits, double now) {
  if (!process.alive() || !process.killed_because.empty()) return;
  if (!process.condemned.empty()) {
    if (now - process.condemned_since >= last_words_seconds) process.signal(SIGKILL, process.condemned);
    return;
  }
  process.condemned = fault_of(process, now, limits);
  if (process.condemned.empty()) return;
  process.condemned_since = now;
  process.stood_still = stood_still(process.signs, now);
  log::warn("{} will be killed: {}", process.id().text(), process.condemned);
  if (stands_still) stands_still(fmt::format("{}: {}", process.id().text(), process.condemned));
}

std::map<int, std::string> Crew::names_by_process() const {
  std::map<int, std::string> names;
  for (const ServiceProcess* process : everyone())
    if (process->alive()) names[process->pid()] = process->id().text();
  return names;
}

/// The kernel kills without a word to whom it kills.
std::string Crew::describe(const ServiceProcess& process, const os::Ending& ending) {
  bool by_others = ending.signal == SIGKILL && process.killed_because.empty();
  return ending.describe() + (by_others && memory_.killed_lately(now_seconds()) ? ", out of memory" : "");
}

std::optional<Outcome> Crew::replace(ServiceProcess& process, const os::Ending& ending) {
  std::string how = describe(process, ending);
  std::string what = fmt::format("{} ended: {}{}", process.id().text(), how,
                                 process.killed_because.empty() ? "" : ", " + process.killed_because);
  // A usage fault is the same again in the next process.
  bool usage = ending.signal == 0 && ending.exit_code == static_cast<int>(ExitCode::usage);
  std::optional<double> delay = 0;
  if (!process.requested) delay = process.policy.died(now_seconds());
  if (usage || !delay) {
    std::string why = usage ? ""
                            : fmt::format(", more than {} times within {}", config_.launch.restart_budget,
                                          human_seconds(config_.launch.restart_window_seconds));
    return Outcome{
        usage ? ExitCode::usage : ExitCode::failed,
        fmt::format("{}{}; its last log lines:{}", what, why, last_log_lines(process.id(), shown_log_lines))};
  }
  ++process.restarts;
  std::string cause = process.killed_because.empty() ? how : process.killed_because;
  notes_.ended(process.id().text(), process.id().kind == service::Kind::worker, cause, process.stood_still,
               now_seconds());
  std::string line = fmt::format("{}; it is started again (restart {})", what, process.restarts);
  log::warn("{}", line);
  terminal_.line(line);
  process.start_after(*delay);
  return std::nullopt;
}

void Crew::restart(const ServiceId& id) {
  ServiceProcess& process = at(id.kind, id.rank);
  if (!process.alive()) fail("The {} is not running now; it is being started.", id.text());
  process.requested = true;
  process.signal(SIGKILL, "restarted by request");
}

}  // namespace ganymede::launcher
