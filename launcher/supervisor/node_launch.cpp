#include "launcher/supervisor/node_launch.h"

#include "common/base/log.h"
#include "launcher/keeper/stop_order.h"
#include "launcher/supervisor/launching.h"
#include "launcher/supervisor/node_answers.h"
#include "launcher/supervisor/node_begin.h"
#include "launcher/supervisor/posted_server.h"

namespace ganymede::launcher {
namespace {

/// The launcher of another node.
struct NodeLaunch : Launching {
  using Launching::Launching;

  Cells take_cells(const Welcome& welcome);
  Outcome supervise(Cells& cells, const CoordinatorWay& way, std::uint64_t seat);
  Outcome take_part(double patience);
  Outcome take_part_again(const Outcome& before, double patience);
};

/// The segments of the launcher before this one, if they are complete and of the same job; otherwise new ones.
Cells NodeLaunch::take_cells(const Welcome& welcome) {
  if (auto cells = intact_cells(welcome.job)) return std::move(*cells);
  ready = begin_on_node(*this, welcome);
  return new_cells();
}

Outcome NodeLaunch::supervise(Cells& cells, const CoordinatorWay& way, std::uint64_t seat) {
  door.reset();  // from here on the supervisor answers
  terminal.live("");
  terminal.line(
      fmt::format("node {} takes part with {} {}", options.node, cells.count(), cells.count() == 1 ? "rank" : "ranks"));
  boost::asio::io_context io;
  NodeSupervisor supervisor({.io = io,
                             .config = ready.config,
                             .job = ready.job,
                             .cells = cells,
                             .terminal = terminal,
                             .signals = signals,
                             .life = life,
                             .programs = programs,
                             .run = options.run,
                             .node = options.node,
                             .seat = seat,
                             .endpoint = way.endpoint,
                             .key = way.key,
                             .budget = ready.budget});
  msg::ServerOptions passing_on{.secret_key = "",
                                .relay = msg::RelayOptions{.endpoint = way.endpoint,
                                                           .server_key = way.key,
                                                           .identity = fmt::format("node.{}.passing", options.node),
                                                           .takes = is_for_coordinator}};
  PostedServer server(
      io, fmt::format("ipc://{}", service::launcher_socket),
      [&supervisor](const std::string&, const msg::Message& request) { return answer(supervisor, request); },
      passing_on);
  return supervisor.run();
}

/// From the question whether this node takes part to the end of its services. Throws Error.
Outcome NodeLaunch::take_part(double patience) {
  enter("waiting for node 0");
  CoordinatorWay way = find_coordinator(options, patience, signals);
  std::uint64_t seat = seat_of_keeper(options.run);
  Welcome welcome = meet_coordinator(options, way, seat, patience, signals, terminal);
  members = welcome.members;
  Cells cells = take_cells(welcome);
  Outcome outcome = supervise(cells, way, seat);
  Cells::drop_all(keeper);
  return outcome;
}

/// A node that lost its coordinator may find that the world went on without it, or nobody.
Outcome NodeLaunch::take_part_again(const Outcome& before, double patience) {
  open_door();
  terminal.line(before.text.empty() ? fmt::format("node {}: the world forms again", options.node) : before.text);
  try {
    return take_part(patience);
  } catch (const Error& error) {
    if (before.text.empty() || error.code() != ExitCode::failed) throw;
    log::warn("{}", error.what());
    return {ExitCode::can_go_on, before.text};
  }
}

}  // namespace

Outcome launch_node(const Options& options, const std::string& programs) {
  NodeLaunch launch(options, programs);
  config::Config own = config::load(options.recipe, options.settings);
  coordinator::check_nodes(static_cast<int>(options.nodes.size()), own);
  bool resumed = !launch.keeper.list(Deadline::after_seconds(10)).empty();
  if (keeper::read_stop_order() == keeper::StopOrder::now) {
    Cells::drop_all(launch.keeper);
    return {ExitCode::can_go_on, ""};
  }
  Outcome outcome = launch.take_part(resumed ? own.launch.node_timeout_seconds : own.launch.node_start_seconds);
  while (outcome.again && keeper::read_stop_order() == keeper::StopOrder::none)
    outcome = launch.take_part_again(outcome, own.launch.node_start_seconds);
  launch.terminal.line(fmt::format("node {}: {}", options.node, outcome.code == ExitCode::done ? "done" : "stopped"));
  return outcome;
}

}  // namespace ganymede::launcher
