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
constexpr double node_patience = 30;  // seconds beyond all timeouts until other nodes are left to themselves

}  // namespace

void Supervisor::on_signal(int number) {
  log::info("signal {} arrived", number);
  if (number == SIGUSR1) {
    order_stacks();
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
  parts_.life.give();
  if (phase_ == Phase::working) {
    crew_.watch(now);
    watch_nodes(now);
    consider_first_generation();
    consider_finish();
    watch_draining(now);
    watch_time_limit();
    watch_changes();
    note_restarts();
    swap_.watch(now);
  } else if (phase_ == Phase::rescuing) {
    crew_.watch(now);
    watch_rescue(now);
  } else {
    press_on(now);
  }
  timer_.expires_after(tick_interval);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) tick();
  });
}

/// Seconds; when a checkpoint service of any node made progress last.
double Supervisor::checkpoint_grown(double now) const {
  return std::max(crew_.checkpoint_grown(), now - nodes_.checkpoint_idle());
}

void Supervisor::watch_draining(double now) {
  if (phase_ != Phase::working || draining_since_ == 0) return;
  double latest = std::max(draining_since_, checkpoint_grown(now));
  double patience = parts_.config.launch.stop_timeout_seconds;
  if (now - latest <= patience) return;
  halt({ExitCode::failed,
        fmt::format("The checkpoint of step {}, the last one, was not committed: no checkpoint service "
                    "made progress for {} (launch.stop_timeout_seconds); see {}/checkpoint.*.log.",
                    parts_.cells.decided_step(), human_seconds(patience), service::log_folder)},
       false);
}

void Supervisor::watch_time_limit() {
  if (stopping_ || phase_ != Phase::working) return;
  auto why = limit_.due(wall_seconds());
  if (!why) return;
  log::info("{}", *why);
  parts_.terminal.line(*why);
  stop();
}

void Supervisor::watch_changes() {
  write_steps([&] {
    for (const ChangeState& change : changes_.note()) {
      std::string line = fmt::format("change {}, {}", change.number, change.describe());
      log::info("{}", line);
      parts_.steps.line_after(change.from_step > 0 ? change.from_step - 1 : 0, line);
    }
  });
}

ChangeState Supervisor::change(const std::vector<Changes::Value>& values) {
  watch_changes();
  swap_.require_none();
  return changes_.order(values, stopping_ || phase_ != Phase::working);
}

/// What it says about a change in force is written down before.
ChangeState Supervisor::change_state(std::uint64_t number) {
  watch_changes();
  return changes_.state(number);
}

SwapReport Supervisor::swap(const SwapOrder& order) {
  watch_changes();
  if (stopping_ || phase_ != Phase::working) fail("The run is ending; its optimizer is not swapped any more.");
  if (!nodes_.all_here()) fail("Not all nodes of the run have come yet: order the swap when they have.");
  return swap_.order(order);
}

SwapReport Supervisor::swap_report(std::uint64_t epoch) {
  watch_changes();
  return swap_.report(epoch);
}

std::string Supervisor::optimizer() {
  const config::Config* config = epochs_.find_config(parts_.cells.epoch_in_force(parts_.cells.ranks().first));
  return config ? config->optimizer.name : "";
}

void Supervisor::halt(Outcome outcome, bool hard) {
  if (phase_ != Phase::halting || outcome_.again) outcome_ = std::move(outcome);
  phase_ = Phase::halting;
  hard_ = hard_ || hard;
  end_.halt(now_seconds(), hard);
  consider_over();
}

void Supervisor::press_on(double now) {
  if (auto text = end_.press_on(now)) {
    outcome_ = {ExitCode::failed, *text};
    parts_.io.stop();
  }
  const config::Launch& launch = parts_.config.launch;
  double longest_end = launch.stop_timeout_seconds + launch.node_timeout_seconds + node_patience;
  if (!crew_.any_alive() && now - end_.began() > longest_end) {
    log::warn("not all nodes said that they have ended");
    parts_.io.stop();
  }
  consider_over();
}

void Supervisor::consider_over() {
  if (is_ending() && !crew_.any_alive() && nodes_.all_ended(now_seconds(), resumed_)) parts_.io.stop();
}

}  // namespace ganymede::launcher
