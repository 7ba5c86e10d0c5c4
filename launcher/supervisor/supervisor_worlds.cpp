#include "common/base/log.h"
#include "common/base/text.h"
#include "launcher/supervisor/supervisor.h"

/// The part of the supervisor that leaves a world which cannot go on, so that it forms again from a checkpoint.
namespace ganymede::launcher {

bool Supervisor::hello(const coordinator::NodeTable::Hello& hello) {
  bool takes_part = nodes_.hello(hello, now_seconds());
  if (outcome_.again) {
    nodes_.has_left(hello.node);
    return false;  // its place is in the next world
  }
  if (takes_part) log::info("node {} is there, on {}", hello.node, hello.host);
  if (!takes_part && spares_told_.insert(hello.node).second) {
    std::string line = fmt::format("{} waits as a spare", nodes_.name(hello.node));
    log::info("{}", line);
    parts_.terminal.line(line);
  }
  return takes_part;
}

/// Every node ends its services and asks for its place in the next world. `why`: a sentence; `lost`: nodes that will
/// not take part; `detect`: seconds that it took to notice. Where no world can form, the run ends with what is durable.
void Supervisor::form_again(const std::string& why, const std::vector<int>& lost, double detect) {
  if (phase_ != Phase::working) return;
  double now = now_seconds();
  auto next = parts_.reforming.next(parts_.world, lost, nodes_.spares(now));
  std::string obstacle;
  if (stopping_) {
    obstacle = "The run was stopping.";
  } else if (!next) {
    obstacle = parts_.reforming.why_not(parts_.world, lost);
  } else if (!parts_.reforming.allowed(now)) {
    obstacle =
        fmt::format("It has formed again more than {} times within {} (launch.restart_budget).",
                    parts_.config.launch.restart_budget, human_seconds(parts_.config.launch.restart_window_seconds));
  }
  if (!obstacle.empty())
    return halt({ExitCode::can_go_on,
                 fmt::format("{} {} The same command on all nodes goes on from the last checkpoint.", why, obstacle)},
                false);
  std::string from = last_committed_ ? fmt::format("the checkpoint of step {}", *last_committed_)
                                     : "the beginning, for there is no checkpoint yet";
  std::string line = fmt::format("{} The world forms again from {}", why, from);
  log::warn("{}", line);
  parts_.terminal.line(line);
  forming_again_ = {
      .number = coordinator::event_number(), .process = "the world", .worker = true, .cause = why, .detect = detect};
  Outcome again{ExitCode::can_go_on, ""};
  again.again = true;
  halt(std::move(again), false);
}

/// The first generation of a world that has formed again begins.
void Supervisor::note_formed() {
  double now = now_seconds();
  coordinator::RestartEvent event = *parts_.formed_again;
  event.restart = now - parts_.formed_again_since;
  restarts_.take(0, event, now, parts_.cells.decided_step(), membership_.generation());
  parts_.formed_again.reset();
}

}  // namespace ganymede::launcher
