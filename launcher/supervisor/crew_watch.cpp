#include <signal.h>

#include <algorithm>
#include <string_view>

#include "common/base/log.h"
#include "common/base/text.h"
#include "common/service/heartbeat.h"
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

/// What only serves messages: it says nothing about what a service does.
const std::vector<std::string_view> message_threads = {service::heartbeat_thread, "ZMQbg"};

/// Why a service has to be killed; empty when it is healthy.
std::string fault_in(const ServiceProcess& process, double now, const VitalLimits& limits) {
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
  process.registered_as(pid);
  process.came = now_seconds();
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

VitalLimits Crew::limits() const {
  const auto& launch = config_.launch;
  return {
      .start = std::max(least_start_seconds, launch.heartbeat_timeout_seconds),
      .silence = launch.heartbeat_timeout_seconds,
      .standstill = std::max(launch.heartbeat_timeout_seconds, launch.collective_timeout_seconds + own_end_seconds)};
}

void Crew::watch(double now) {
  if (double gap = now - watched_; gap > clock_gap) {
    for (ServiceProcess* process : everyone()) {
      forgive(process->signs, gap);
      process->stall.forgive(gap);
    }
  }
  for (const auto& process : services_) look(*process, limits(), now);
  watch_beside(now);
  watch_trials(now);
  watched_ = now;
  memory_.killed_lately(now);
  if (auto warning = memory_.look(now, [this] { return names_by_process(); })) {
    log::warn("{}", *warning);
    terminal_.line(*warning);
  }
}

void Crew::watch_beside(double now) {
  for (const Standby& one : beside_) {
    VitalLimits own = limits();
    if (!one.superseded) own.standstill = config_.launch.heartbeat_timeout_seconds;  // all of the run waits for it
    look(*one.process, own, now);
  }
  std::erase_if(beside_, [](const Standby& one) { return one.superseded && !one.process->alive(); });
  for (Standby& one : beside_) {
    bool late = one.superseded && now - one.since > own_end_seconds && one.process->killed_because.empty();
    if (late) one.process->signal(SIGKILL, "another optimizer has taken its place");
  }
}

/// What it says of its operation; nothing while that changes, or of one whose words are not the cell's.
std::optional<OperationSigns> Crew::operation_of(const ServiceProcess& process) const {
  if (!words || !process.signs.registered || is_beside(process)) return std::nullopt;
  const step_protocol::ServiceWords& said = words(process.id());
  auto seconds = [](const step_protocol::Word& word) {
    return static_cast<double>(word.load(std::memory_order_acquire)) / 1e9;
  };
  OperationSigns signs{.progress = said.progress.load(std::memory_order_acquire)};
  signs.planned = {seconds(said.planned_ns), seconds(said.planned_cpu_ns)};
  if (said.progress.load(std::memory_order_acquire) != signs.progress) return std::nullopt;
  return signs;
}

std::optional<Stall> Crew::fault_of(ServiceProcess& process, const VitalLimits& limits, double now) {
  os::ProcessState state = os::process_state(process.own_pid());
  if (state == os::ProcessState::traced) forgive(process.signs, now - watched_);
  if (std::string why = fault_in(process, now, limits); !why.empty())
    return Stall{now - stood_still(process.signs, now), why};
  if (process.wrapped()) return std::nullopt;  // a debugger stops it on purpose, a profiler slows it down
  auto threads = [&] { return os::thread_states(process.pid(), message_threads); };
  auto stall = process.stall.look(now, config_.launch.stall_seconds, state, operation_of(process), threads);
  if (stall && state != os::ProcessState::stopped) stall->why += fmt::format(" ({})", process.detail);
  return stall;
}

/// Kills one that shows no signs of life, a moment after all have written what they are at.
void Crew::look(ServiceProcess& process, const VitalLimits& limits, double now) {
  if (!process.alive() || !process.killed_because.empty()) return;
  if (!process.condemned.empty()) {
    if (now - process.condemned_since >= last_words_seconds) process.signal(SIGKILL, process.condemned);
    return;
  }
  auto fault = fault_of(process, limits, now);
  if (!fault) return;
  process.condemned = fault->why;
  process.condemned_since = now;
  process.stood_since = fault->since;
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
  bool on_trial = ends_on_trial(process, ending);
  bool usage = !on_trial && ending.signal == 0 && ending.exit_code == static_cast<int>(ExitCode::usage);
  std::optional<double> delay = 0;
  if (!process.requested && !on_trial) delay = process.policy.died(now_seconds());
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
  double now = now_seconds(), detect = process.stood_since > 0 ? now - process.stood_since : 0;
  notes_.ended(process.id().text(), process.id().kind == service::Kind::worker, cause, detect, now);
  std::string line = fmt::format("{}; it is started again (restart {})", what, process.restarts);
  log::warn("{}", line);
  terminal_.line(line);
  process.start_after(*delay);
  return std::nullopt;
}

}  // namespace ganymede::launcher
