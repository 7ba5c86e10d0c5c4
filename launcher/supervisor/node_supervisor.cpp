#include "launcher/supervisor/node_supervisor.h"

#include <signal.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/post.hpp>

#include "common/base/log.h"
#include "common/base/text.h"
#include "launcher/keeper/stop_order.h"

namespace ganymede::launcher {
namespace {

constexpr auto tick_interval = std::chrono::milliseconds(200);
constexpr double time_to_leave = 5;         // seconds between the first worker that leaves and the last
constexpr std::size_t parts_of_a_rank = 2;  // that are told; the next snapshot begins when all have the one before
constexpr double farewell_seconds = 3;      // for the last word to the coordinator

std::uint64_t random_session() {
  std::uint64_t session = 0;
  if (getrandom(&session, sizeof(session), 0) != sizeof(session)) fail("The kernel gives no random numbers.");
  return session;
}

coordinator::StopWish wish_of(keeper::StopOrder order) {
  switch (order) {
    case keeper::StopOrder::now:
      return coordinator::StopWish::now;
    case keeper::StopOrder::after_step:
      return coordinator::StopWish::after_step;
    case keeper::StopOrder::none:
      break;
  }
  return coordinator::StopWish::none;
}

}  // namespace

NodeSupervisor::NodeSupervisor(NodeParts parts)
    : parts_(std::move(parts)),
      crew_(
          parts_.io, parts_.config, parts_.cells.ranks(), os::inspect_machine(), parts_.programs, parts_.run,
          parts_.terminal, [this](ServiceProcess& process, const os::Ending& ending) { ended(process, ending); },
          [this](int rank) { return parts_.cells.epoch_in_force(rank); }),
      end_(crew_),
      epochs_(parts_.config, parts_.job),
      epoch_({{parts_.job.id, parts_.cells, crew_, epochs_}, parts_.programs, parts_.run, parts_.budget}),
      viewer_(parts_.config, parts_.cells, crew_),
      timer_(parts_.io),
      stop_(wish_of(keeper::read_stop_order())),
      session_(random_session()),
      heard_(now_seconds()) {
  crew_.words = [this](const ServiceId& id) -> const step_protocol::ServiceWords& {
    return parts_.cells.control(id.rank).services[static_cast<std::size_t>(id.kind)];
  };
  crew_.stands_still = [this](const std::string& what) {
    crew_.ask_for_stacks();
    note_where(what, viewer_.view());
  };
  auto& io = parts_.io;
  link_ = std::make_unique<coordinator::NodeLink>(
      coordinator::NodeLink::Ways{parts_.endpoint, parts_.key, parts_.job.id, parts_.node},
      [this, &io](const coordinator::NodeWishes& wishes) { boost::asio::post(io, [this, wishes] { obey(wishes); }); },
      [this, &io](int code, const std::string& text) {
        boost::asio::post(io, [this, code, text] { halt({exit_code_of(code), text}, false); });
      });
}

Outcome NodeSupervisor::run() {
  parts_.signals.watch(parts_.io, [this](int number) { on_signal(number); });
  crew_.start_all();
  tick();
  parts_.io.run();
  parts_.life.end();
  parts_.signals.ignore();
  tell();
  bool heard = now_seconds() - heard_ < farewell_seconds;  // else nobody is there to be told
  if (heard) link_->flush(Deadline::after_seconds(farewell_seconds));
  link_.reset();
  return outcome_;
}

void NodeSupervisor::registered(const ServiceId& id, int pid) {
  crew_.registered(id, pid);
  if (id.kind == service::Kind::worker) tell();
}

void NodeSupervisor::fatal(const ServiceId& id, int pid, int exit_code, const std::string& text) {
  crew_.at(id.kind, id.rank);  // throws for one that does not exist
  if (epoch_.crew().fault(pid, text) || crew_.take_fault_on_trial(id, pid, text)) return;
  std::string line = fmt::format("{}: {}", id.text(), text);
  log::error("{}", line);
  bool is_ended_anyway = phase_ == Phase::rescuing && Crew::computes(id.kind);
  if (!is_ending() && !is_ended_anyway) break_down({exit_code_of(exit_code), line});
}

void NodeSupervisor::part(const fbs::PartDurable& part) {
  if (part.rank() < 0 || part.rank() >= parts_.config.parallel.ranks) fail("There is no rank {}.", part.rank());
  std::erase_if(parts_durable_, [&](const auto& one) { return one.rank == part.rank() && one.step == part.step(); });
  parts_durable_.push_back({part.rank(), part.step(), part.bytes(), part.hash()->str()});
  // With those that its cells write for other replicas.
  std::size_t most = parts_of_a_rank * static_cast<std::size_t>(parts_.cells.count() * parts_.config.parallel.replicas);
  if (parts_durable_.size() > most) parts_durable_.erase(parts_durable_.begin());
  tell();
}

/// The run cannot go on here: the coordinator ends it everywhere; or, where the states do not belong together, leads
/// all nodes back to the checkpoint.
void NodeSupervisor::break_down(const Outcome& outcome) {
  failure_ = outcome;
  halt(outcome, false);
  outcome_.again = outcome.code == ExitCode::can_go_on;
}

bool NodeSupervisor::wants_end_of(const ServiceId& id) {
  if (phase_ == Phase::finishing) return true;
  if (id.kind != service::Kind::worker || left_since_ == 0) return false;
  bool late = now_seconds() - left_since_ > time_to_leave;
  return late || crew_.at(id.kind, id.rank).signs.started > left_since_;
}

void NodeSupervisor::ended(ServiceProcess& process, const os::Ending& ending) {
  if (is_ending()) {
    process.finished = true;
    return consider_over();
  }
  if (epoch_.crew().ended(process, ending)) return tell();
  if (phase_ == Phase::rescuing && Crew::computes(process.id().kind)) return tell();
  bool worker = process.id().kind == service::Kind::worker;
  bool left = ending.signal == 0 && ending.exit_code == 0 && parts_.cells.ends_after_decided();
  if (worker && (left || left_since_ > 0)) {
    process.finished = true;
    return tell();
  }
  if (worker) ++lost_[process.id().rank];
  if (auto outcome = crew_.replace(process, ending)) break_down(*outcome);
  tell();
}

void NodeSupervisor::obey(const coordinator::NodeWishes& wishes) {
  heard_ = now_seconds();
  if (wishes.generation > generation()) {
    parts_.cells.announce_generation(wishes.generation);
    log::info("generation {} begins", wishes.generation);
  }
  if (wishes.stacks > stacks_order_) crew_.ask_for_stacks();
  stacks_order_ = std::max(stacks_order_, wishes.stacks);
  if (wishes.change) parts_.cells.prepare_change(*wishes.change);
  try {
    if (phase_ == Phase::working) epoch_.obey(wishes);
  } catch (const Error& error) {
    break_down({error.code(), error.what()});
  }
  if (wishes.leaving && left_since_ == 0) left_since_ = heard_;
  switch (wishes.phase) {
    case coordinator::Phase::working:
      work_again();
      return restart_as_ordered(wishes);
    case coordinator::Phase::rescuing:
      return rescue(wishes);
    case coordinator::Phase::finishing:
      return finish(wishes);
    case coordinator::Phase::reforming:
      return leave_world("the world forms again");
    case coordinator::Phase::halting:
    case coordinator::Phase::killing:
      std::string text = wishes.text.empty() ? "" : "The run was ended: " + wishes.text;
      return halt({exit_code_of(wishes.exit_code), text}, wishes.phase == coordinator::Phase::killing);
  }
}

void NodeSupervisor::restart_as_ordered(const coordinator::NodeWishes& wishes) {
  for (const auto& order : wishes.restarts) {
    std::uint64_t& last = restarted_[{order.kind, order.rank}];
    if (order.number <= last || phase_ != Phase::working) continue;
    last = order.number;
    try {
      crew_.restart(order);
    } catch (const Error& error) {
      log::warn("{}", error.what());
      if (order.binary) crew_.refuse(order, fmt::format("Node {}: {}", parts_.node, error.what()));
    }
  }
}

void NodeSupervisor::finish(const coordinator::NodeWishes& wishes) {
  if (is_ending()) return;
  log::info("the coordinator asks to finish");
  outcome_ = {exit_code_of(wishes.exit_code), wishes.text};
  phase_ = Phase::finishing;
  end_.finish(now_seconds(), parts_.config.launch.stop_timeout_seconds);
  consider_over();
}

void NodeSupervisor::halt(Outcome outcome, bool hard) {
  if (phase_ != Phase::halting) {
    outcome_ = std::move(outcome);
    log::info("the services are ended{}{}", outcome_.text.empty() ? "" : ": ", outcome_.text);
  }
  phase_ = Phase::halting;
  end_.halt(now_seconds(), hard);
  consider_over();
}

void NodeSupervisor::on_signal(int number) {
  log::info("signal {} arrived", number);
  if (number == SIGUSR1) return crew_.ask_for_stacks();
  if (number == SIGINT) ++interrupts_;
  bool now = interrupts_ > 1 || keeper::read_stop_order() == keeper::StopOrder::now;
  keeper::note_stop_order(now ? keeper::StopOrder::now : keeper::StopOrder::after_step);
  stop_ = now ? coordinator::StopWish::now : std::max(stop_, coordinator::StopWish::after_step);
  if (now) return halt({ExitCode::can_go_on, ""}, true);
  parts_.terminal.line("stopping all nodes: the current step is finished and a checkpoint is written");
  tell();
}

void NodeSupervisor::tick() {
  double now = now_seconds();
  parts_.life.give();
  if (!is_ending()) {
    crew_.watch(now);
    epoch_.crew().watch(now);
    watch_coordinator(now);
  } else if (auto text = end_.press_on(now)) {
    outcome_ = {ExitCode::failed, *text};
    parts_.io.stop();
  }
  tell();
  timer_.expires_after(tick_interval);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) tick();
  });
}

void NodeSupervisor::watch_coordinator(double now) {
  double patience = parts_.config.launch.node_timeout_seconds;
  if (now - heard_ <= patience) return;
  std::string text = fmt::format(
      "The coordinator, node 0 at {}, has not answered for {} (launch.node_timeout_seconds). The same "
      "command on all nodes goes on from the last checkpoint.",
      parts_.endpoint, human_seconds(patience));
  halt({ExitCode::can_go_on, text}, false);
  // The world may go on without this node, which then waits as a spare.
  outcome_.again = parts_.config.elastic.wanted();
}

void NodeSupervisor::tell() { link_->tell(state()); }

coordinator::NodeState NodeSupervisor::state() {
  coordinator::NodeState state{.node = parts_.node,
                               .seat = parts_.seat,
                               .session = session_,
                               .pid = getpid(),
                               .keeper_pid = getppid(),
                               .generation = generation(),
                               .restarts = crew_.restarts(),
                               .cells = viewer_.view(),
                               .stop = stop_,
                               .ended = is_ending() && !crew_.any_alive(),
                               .exit_code = static_cast<int>(failure_.code),
                               .failure = failure_.text,
                               .parts = {}};
  state.parts = parts_durable_;
  state.restart_events = crew_.restart_events();
  state.epoch = epoch_.crew().progress();
  state.checkpoint_idle = now_seconds() - crew_.checkpoint_grown();
  state.settled = phase_ == Phase::rescuing && !crew_.any_worker_alive();
  for (auto& cell : state.cells)
    if (auto lost = lost_.find(cell.rank); lost != lost_.end()) cell.lost = lost->second;
  return state;
}

void NodeSupervisor::consider_over() {
  if (is_ending() && !crew_.any_alive()) parts_.io.stop();
}

}  // namespace ganymede::launcher
