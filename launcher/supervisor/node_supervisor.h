#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "launcher/coordinator/node_link.h"
#include "launcher/keeper/sign_of_life.h"
#include "launcher/supervisor/cell_view.h"
#include "launcher/supervisor/crew_end.h"
#include "launcher/supervisor/node_epoch.h"
#include "launcher/supervisor/signals.h"

namespace ganymede::launcher {

/// What the supervisor of a node other than 0 is given; all of it outlives it.
struct NodeParts {
  boost::asio::io_context& io;
  const config::Config& config;
  const service::Job& job;
  Cells& cells;
  Terminal& terminal;
  Signals& signals;
  const keeper::SignOfLife& life;
  std::string programs, run;  // folders
  int node = 0;
  std::uint64_t seat = 0;
  std::string endpoint, key;  // of the coordinator
  HostBudget budget = {};
};

/// Runs the services of one node for the coordinator: starts and watches them as the supervisor of node 0 does its own,
/// tells the coordinator their state, and does what it wishes. Everything happens in the io_context's thread.
class NodeSupervisor {
 public:
  explicit NodeSupervisor(NodeParts parts);

  /// Starts the services and returns when every one of them has ended and the coordinator knows.
  Outcome run();

  // What services report.
  void registered(const ServiceId& id, int pid);
  void heartbeat(const ServiceId& id, const fbs::Heartbeat& beat) { crew_.heartbeat(id, beat); }
  /// `pid` tells a standby of a swap.
  void fatal(const ServiceId& id, int pid, int exit_code, const std::string& text);
  void part(const fbs::PartDurable& part);
  /// Whether this service is to end now that its work is done.
  bool wants_end_of(const ServiceId& id);
  std::uint64_t generation() { return parts_.cells.highest_generation(); }
  const service::Job& job() const { return parts_.job; }

 private:
  enum class Phase { working, rescuing, finishing, halting };

  void ended(ServiceProcess& process, const os::Ending& ending);
  void obey(const coordinator::NodeWishes& wishes);
  void restart_as_ordered(const coordinator::NodeWishes& wishes);
  void finish(const coordinator::NodeWishes& wishes);
  void rescue(const coordinator::NodeWishes& wishes);
  void work_again();
  bool is_ending() const { return phase_ == Phase::finishing || phase_ == Phase::halting; }
  void leave_world(const std::string& why);
  void halt(Outcome outcome, bool hard);
  void break_down(const Outcome& outcome);
  void on_signal(int number);
  void tick();
  void watch_coordinator(double now);
  void tell();
  coordinator::NodeState state();
  void consider_over();

  NodeParts parts_;
  Crew crew_;
  CrewEnd end_;
  Epochs epochs_;
  NodeEpoch epoch_;
  CellViewer viewer_;
  boost::asio::steady_timer timer_;
  std::map<int, std::uint64_t> lost_;                                 // workers, by rank
  std::map<std::pair<service::Kind, int>, std::uint64_t> restarted_;  // number of the last order
  std::vector<coordinator::PartState> parts_durable_;                 // the newest of each rank
  Phase phase_ = Phase::working;
  Outcome outcome_, failure_;  // failure_: of this node, for the coordinator
  coordinator::StopWish stop_ = coordinator::StopWish::none;
  std::uint64_t stacks_order_ = 0;  // the newest that was carried out
  int interrupts_ = 0;
  std::uint64_t session_;
  double heard_;                                 // seconds; the coordinator's last answer
  double left_since_ = 0;                        // seconds; workers of the world leave, their work done; 0: not yet
  std::unique_ptr<coordinator::NodeLink> link_;  // last: its thread posts to this object
};

}  // namespace ganymede::launcher
