#include <algorithm>

#include "common/base/log.h"
#include "common/base/text.h"
#include "launcher/keeper/stop_order.h"
#include "launcher/supervisor/rescale_order.h"
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
    bool left_out = nodes_.is_left_out(hello.node, hello.seat);
    std::string line =
        fmt::format("{} {}", nodes_.name(hello.node),
                    left_out ? "was left on request, and waits; started anew it is a spare" : "waits as a spare");
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
  if (stopping_ && !rescaling_) {
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
  forming_again_ = {
      .number = coordinator::event_number(), .process = "the world", .worker = true, .cause = why, .detect = detect};
  lost.empty() ? leave_world(why) : rescue(why, lost);
}

/// The states that remain belong together. If they are the whole model, the newest step goes to disk before the world
/// is left, and nothing is lost but the step in work.
void Supervisor::rescue(const std::string& why, const std::vector<int>& lost) {
  auto stand_ins = coordinator::stand_ins(parts_.config, nodes_.ranks(lost));
  if (const auto* obstacle = std::get_if<std::string>(&stand_ins)) {
    log::info("memory does not hold the whole model: {}", *obstacle);
    return leave_world(why);
  }
  if (membership_.generation() == 0) return leave_world(why);
  std::string line = fmt::format("{} The memory of the nodes that remain is saved first", why);
  log::warn("{}", line);
  parts_.terminal.line(line);
  phase_ = Phase::rescuing;
  rescue_ = Rescue{lost, std::get<std::vector<coordinator::StandIn>>(stand_ins), now_seconds()};
  crew_.end_workers("the world is left");
}

/// Nodes that are lost, or cannot go on, while the memory of the others is saved; and those that were silent and are
/// there again, with their memory. False when the world is left.
bool Supervisor::watch_others_in_rescue(double now) {
  std::vector<int> lost = nodes_.silent_members(now, parts_.config.launch.node_timeout_seconds);
  const auto* failed = nodes_.failed();
  if (failed && std::ranges::count(lost, failed->node)) failed = nullptr;
  std::string obstacle = failed ? nodes_.name(failed->node) + ": " + failed->failure : "";
  if (obstacle.empty() && lost == rescue_->lost) return true;
  auto is_known = [&](int node) { return std::ranges::count(rescue_->lost, node) > 0; };
  if (obstacle.empty() && rescue_->order && std::ranges::all_of(lost, is_known)) return true;  // it came back too late
  auto stand_ins = coordinator::stand_ins(parts_.config, nodes_.ranks(lost));
  if (obstacle.empty() && rescue_->order) obstacle = "another node was lost meanwhile";
  if (const auto* why = std::get_if<std::string>(&stand_ins); obstacle.empty() && why) obstacle = *why;
  if (!obstacle.empty()) {
    leave_world(fmt::format("Memory cannot be saved ({}).", obstacle));
    return false;
  }
  rescue_->lost = lost;
  rescue_->stand_ins = std::get<std::vector<coordinator::StandIn>>(stand_ins);
  return true;
}

/// The newest step that a world can begin with.
std::uint64_t Supervisor::durable() { return std::max(last_committed_.value_or(0), parts_.cells.load_step()); }

/// The one that all ranks that remain have decided; nothing when they have not decided the same.
std::optional<std::uint64_t> Supervisor::step_to_rescue() {
  auto steps = parts_.cells.decided_steps();
  for (std::uint64_t step : nodes_.decided(rescue_->lost)) steps.push_back(step);
  bool same = std::ranges::all_of(steps, [&](std::uint64_t step) { return step == steps.front(); });
  return same ? std::optional(steps.front()) : std::nullopt;
}

/// Several times a second: workers end; then every checkpoint service writes the step, once no process of a lost node
/// can write a part any more.
void Supervisor::watch_rescue(double now) {
  if (!watch_others_in_rescue(now)) return;
  double patience = parts_.config.launch.stop_timeout_seconds + parts_.config.launch.node_timeout_seconds;
  if (now - std::max(rescue_->began, checkpoint_grown(now)) > patience)
    return leave_world(
        fmt::format("Memory cannot be saved: no checkpoint service made progress for {}.", human_seconds(patience)));
  if (!rescue_->order) {
    std::vector<int> gone = nodes_.lost(now);
    auto is_gone = [&](int node) { return std::ranges::count(gone, node) > 0; };
    if (crew_.any_worker_alive() || !nodes_.settled(rescue_->lost) || !std::ranges::all_of(rescue_->lost, is_gone))
      return;
    auto step = step_to_rescue();
    if (!step) return leave_world("Memory cannot be saved: its ranks are at different steps.");
    if (*step <= durable()) return leave_after(*step);
    rescue_->order = {*step, rescue_->stand_ins};
    parts_.cells.order_rescue(*rescue_->order);
  }
  std::uint64_t step = rescue_->order->step;
  if (durable() < step) return;
  leave_after(step);
}

/// The reports of the last steps are lost with their workers.
void Supervisor::leave_after(std::uint64_t step) {
  write_steps([&] { make_good(step + 1); });
  if (phase_ == Phase::rescuing) leave_world(fmt::format("Step {} is safe.", step));
}

/// `cause`: a sentence.
void Supervisor::begin_rescale(const coordinator::WorldWish& wish, const std::string& cause) {
  rescaling_ = true;
  parts_.reforming.wish(wish, nodes_.seats());
  forming_again_ = {.number = coordinator::event_number(), .process = "the world", .worker = true, .cause = cause};
}

/// After the step in work, as for a stop.
void Supervisor::rescale_after_step(const coordinator::WorldWish& wish, const std::string& cause) {
  begin_rescale(wish, cause);
  stopping_ = true;
  parts_.cells.request_stop();
  std::string line = cause + " The current step is finished, and a checkpoint written first";
  log::info("{}", line);
  parts_.terminal.line(line);
}

/// A launcher before this one may have died on the way: the order is of this world, or was carried out.
void Supervisor::resume_rescale() {
  auto order = read_rescale_order();
  if (!order) return;
  bool stops = keeper::read_stop_order() != keeper::StopOrder::none;
  if (order->job != parts_.job.id || stops) return clear_rescale_order();
  rescale_after_step(order->wish, "The world was about to form again on request.");
}

void Supervisor::rescale(const coordinator::WorldWish& wish, bool at_once) {
  bool sooner = at_once && rescaling_;  // it hangs in its last step
  if ((stopping_ && !sooner) || phase_ != Phase::working) fail("The run is ending, or its world forms again already.");
  if (membership_.generation() == 0 || !nodes_.all_here()) fail("The run does not train yet: ask again when it does.");
  if (swap_.under_way()) fail("Another optimizer is being swapped in: ask again when it is in force.");
  auto next = parts_.reforming.wished(parts_.world, wish, nodes_.spares(now_seconds()));
  std::string cause = fmt::format("On request the world forms again {}.", describe(next));
  note_rescale_order({parts_.job.id, wish});
  if (!at_once) return rescale_after_step(wish, cause);
  begin_rescale(wish, cause);
  rescue(cause, {});
}

/// `why`: a sentence.
void Supervisor::leave_world(const std::string& why) {
  std::string from = last_committed_ ? fmt::format("the checkpoint of step {}", *last_committed_)
                                     : "the beginning, for there is no checkpoint yet";
  std::string line = fmt::format("{} The world forms again from {}", why, from);
  log::warn("{}", line);
  parts_.terminal.line(line);
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
