#include <signal.h>

#include <algorithm>

#include "common/base/log.h"
#include "common/base/text.h"
#include "launcher/keeper/stop_order.h"
#include "launcher/supervisor/supervisor.h"

/// The part of the supervisor that time drives: vital signs, deadlines, signals, and the way to the end.
namespace ganymede::launcher {
namespace {

constexpr auto tick_interval = std::chrono::milliseconds(250);
constexpr double clock_gap = 2;             // seconds without a tick after which nobody is blamed for silence
constexpr double halt_grace = 5;            // seconds between SIGTERM and SIGKILL
constexpr double kill_patience = 20;        // seconds after SIGKILL until a process counts as one that cannot be ended
constexpr double least_start_seconds = 60;  // a busy machine loads libtorch slowly

}  // namespace

void Supervisor::on_signal(int number) {
  log::info("signal {} arrived", number);
  if (number == SIGUSR1) {
    crew_.signal_all(SIGUSR1, "");
    parts_.terminal.line(fmt::format("{} at step {}", state(), parts_.steps.last_step()));
    return;
  }
  if (number == SIGINT) ++interrupts_;
  // The keeper counts as well: for a launcher before this one, and when two signals came here as one.
  if (interrupts_ > 1 || keeper::read_stop_order() == keeper::StopOrder::now) return stop_now();
  stop();
}

void Supervisor::tick() {
  double now = now_seconds();
  double gap = now - ticked_;
  if (gap > clock_gap)
    for (const auto& process : crew_.all()) forgive(process->signs, gap);
  ticked_ = now;
  if (phase_ == Phase::working) {
    watch_vitals(now);
    consider_first_generation();
    consider_finish();
    watch_draining(now);
  } else {
    press_on(now);
  }
  timer_.expires_after(tick_interval);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) tick();
  });
}

void Supervisor::watch_vitals(double now) {
  const auto& launch = parts_.config.launch;
  VitalLimits limits{.start = std::max(least_start_seconds, launch.heartbeat_timeout_seconds),
                     .silence = launch.heartbeat_timeout_seconds,
                     .standstill = std::max(launch.heartbeat_timeout_seconds, launch.collective_timeout_seconds)};
  for (const auto& process : crew_.all()) {
    if (!process->alive() || !process->killed_because.empty()) continue;
    switch (judge(process->signs, now, limits)) {
      case Verdict::healthy:
        break;
      case Verdict::never_came:
        process->signal(SIGKILL, fmt::format("it did not register within {}", human_seconds(limits.start)));
        break;
      case Verdict::silent:
        process->signal(SIGKILL, fmt::format("it gave no sign of life for {}", human_seconds(limits.silence)));
        break;
      case Verdict::stands_still:
        process->signal(
            SIGKILL, fmt::format("it made no progress for {} ({})", human_seconds(limits.standstill), process->detail));
        break;
    }
  }
}

void Supervisor::watch_draining(double now) {
  if (phase_ != Phase::working || draining_since_ == 0) return;
  double latest = draining_since_;
  for (const auto& process : crew_.all())
    if (process->id().kind == service::Kind::checkpoint) latest = std::max(latest, process->signs.grown);
  double patience = parts_.config.launch.stop_timeout_seconds;
  if (now - latest <= patience) return;
  halt({ExitCode::failed,
        fmt::format("The checkpoint of step {}, the last one, was not committed: no checkpoint service "
                    "made progress for {} (launch.stop_timeout_seconds); see {}/checkpoint.*.log.",
                    parts_.cells.decided_step(), human_seconds(patience), service::log_folder)},
       false);
}

void Supervisor::halt(Outcome outcome, bool hard) {
  bool first = phase_ != Phase::halting;
  if (first) {
    outcome_ = std::move(outcome);
    phase_ = Phase::halting;
    phase_began_ = now_seconds();
    kills_sent_ = hard ? 1 : 0;
    crew_.cancel_restarts();
  }
  if (hard) kills_sent_ = 1;
  if (first || hard) crew_.signal_all(hard ? SIGKILL : SIGTERM, "the run ends");
  consider_over();
}

void Supervisor::press_on(double now) {
  double patience = phase_ == Phase::finishing ? parts_.config.launch.stop_timeout_seconds : halt_grace;
  double waited = now - phase_began_;
  if (kills_sent_ == 0 && waited > patience) {
    kills_sent_ = 1;
    for (const auto& process : crew_.all())
      if (process->alive())
        log::warn("{} did not end within {}; it is killed", process->id().text(), human_seconds(patience));
    crew_.signal_all(SIGKILL, "it did not end in time");
  }
  if (waited > patience + kill_patience) {
    std::string names;
    for (const auto& process : crew_.all())
      if (process->alive())
        names += fmt::format("{}{} (process {})", names.empty() ? "" : ", ", process->id().text(), process->pid());
    outcome_ = {ExitCode::failed, fmt::format("These processes cannot be ended: {}.", names)};
    parts_.io.stop();
  }
}

void Supervisor::consider_over() {
  if (phase_ != Phase::working && !crew_.any_alive()) parts_.io.stop();
}

}  // namespace ganymede::launcher
