#include "launcher/supervisor/crew_end.h"

#include <signal.h>

#include "common/base/log.h"
#include "common/base/text.h"

namespace ganymede::launcher {
namespace {

constexpr double halt_grace = 5;      // seconds between SIGTERM and SIGKILL
constexpr double kill_patience = 20;  // seconds after SIGKILL until a process counts as one that cannot be ended

}  // namespace

void CrewEnd::finish(double now, double patience) {
  began_ = now;
  patience_ = patience;
  crew_.cancel_restarts();
}

void CrewEnd::halt(double now, bool hard) {
  bool first = !halting_;
  if (first) {
    halting_ = true;
    began_ = now;
    patience_ = halt_grace;
    killed_ = false;
    crew_.cancel_restarts();
  }
  if (first || hard) crew_.signal_all(hard ? SIGKILL : SIGTERM, "the run ends");
  killed_ = killed_ || hard;
}

std::optional<std::string> CrewEnd::press_on(double now) {
  double waited = now - began_;
  if (!killed_ && waited > patience_) {
    killed_ = true;
    for (const auto& process : crew_.all())
      if (process->alive())
        log::warn("{} did not end within {}; it is killed", process->id().text(), human_seconds(patience_));
    crew_.signal_all(SIGKILL, "it did not end in time");
  }
  if (waited <= patience_ + kill_patience || !crew_.any_alive()) return std::nullopt;
  std::string names;
  for (const auto& process : crew_.all())
    if (process->alive())
      names += fmt::format("{}{} (process {})", names.empty() ? "" : ", ", process->id().text(), process->pid());
  return fmt::format("These processes cannot be ended: {}.", names);
}

}  // namespace ganymede::launcher
