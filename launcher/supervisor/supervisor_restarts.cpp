#include <chrono>

#include "common/base/log.h"
#include "common/base/text.h"
#include "launcher/supervisor/cell_view.h"
#include "launcher/supervisor/supervisor.h"

/// The part of the supervisor that deals with restarts: those that a person asks for, and what each one takes.
namespace ganymede::launcher {
namespace {

constexpr auto look_interval = std::chrono::milliseconds(10);  // while one is not over

/// "worker of rank 1 is back after 1.2 s (restart 0.9 s, re-form 0.1 s, step 13 0.2 s)"
std::string back_line(const coordinator::RestartEvent& event, const std::string& node) {
  double restart = event.restart.value_or(0), reform = event.reform.value_or(0), redo = event.redo.value_or(0);
  std::string phases;
  if (event.detect > 0) phases = fmt::format("detect {}, ", human_seconds(event.detect));
  phases += fmt::format("restart {}, ", human_seconds(restart));
  if (event.worker) phases += fmt::format("re-form {}, ", human_seconds(reform));
  return fmt::format("{}{} is back, the run went on after {} ({}step {} {})", node, event.process,
                     human_seconds(event.detect + restart + reform + redo), phases, event.step + 1,
                     human_seconds(redo));
}

}  // namespace

/// What is new about restarts, of this node's processes and of others'.
void Supervisor::note_restarts() {
  double now = now_seconds();
  std::uint64_t decided = parts_.cells.decided_step();
  for (const auto& event : crew_.restart_events()) restarts_.take(0, event, now, decided, membership_.next_formed());
  for (const auto& state : nodes_.states())
    for (const auto& event : state.restart_events)
      restarts_.take(state.node, event, now, decided, membership_.next_formed());
  std::uint64_t generation = membership_.generation();
  bool formed = parts_.cells.all_formed(generation) && nodes_.all_formed(generation);
  restarts_.watch(now, formed ? generation : 0, decided);
  for (const auto& event : restarts_.take_finished()) {
    std::string line = back_line(event, event.node > 0 ? nodes_.name(event.node) + ": " : "");
    log::info("{}", line);
    parts_.terminal.line(line);
    parts_.steps.take_restart(event);
  }
  watch_restarts();
}

/// Looks often while a restart is not over, for what it takes is as exact as that.
void Supervisor::watch_restarts() {
  if (looks_often_ || !restarts_.open() || phase_ != Phase::working) return;
  looks_often_ = true;
  restart_timer_.expires_after(look_interval);
  restart_timer_.async_wait([this](const boost::system::error_code& error) {
    looks_often_ = false;
    if (!error && phase_ == Phase::working) note_restarts();
  });
}

void Supervisor::order_stacks() {
  crew_.ask_for_stacks();
  stacks_order_ = coordinator::event_number();
  stacks_ordered_ = now_seconds();
}

/// For whoever looks later why a deadline broke.
void Supervisor::note_where(const std::string& reason) {
  order_stacks();
  std::vector<coordinator::CellState> cells = CellViewer(parts_.config, parts_.cells, crew_).view();
  for (const auto& state : nodes_.states()) cells.insert(cells.end(), state.cells.begin(), state.cells.end());
  launcher::note_where(reason, cells);
}

void Supervisor::restart(const ServiceId& id, const std::optional<coordinator::ServiceBinary>& binary) {
  if (phase_ != Phase::working) fail("The run is ending; no service is started again.");
  if (int ranks = parts_.config.parallel.ranks; id.rank < 0 || id.rank >= ranks)
    fail_usage("There is no {}: {}.", id.text(),
               ranks == 1 ? "the only rank is 0" : fmt::format("ranks are 0 to {}", ranks - 1));
  coordinator::RestartOrder given{id.kind, id.rank, coordinator::event_number(), binary};
  if (nodes_.node_of(id.rank) == 0) return crew_.restart(given);
  if (binary) require_same_protocol(id.kind, *binary);
  std::erase_if(orders_, [&](const auto& one) { return one.order.kind == id.kind && one.order.rank == id.rank; });
  orders_.push_back({given, now_seconds()});
}

}  // namespace ganymede::launcher
