#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/config/config.h"
#include "common/os/machine.h"
#include "launcher/coordinator/world_layout.h"
#include "launcher/supervisor/memory_watch.h"
#include "launcher/supervisor/outcome.h"
#include "launcher/supervisor/restart_notes.h"
#include "launcher/supervisor/service_binaries.h"
#include "launcher/supervisor/service_process.h"
#include "launcher/supervisor/terminal.h"
#include "schemas/messages_generated.h"

namespace ganymede::launcher {

/// All services of this node's cells. Used from the io_context's thread alone.
class Crew {
 public:
  /// The state epoch whose optimizer server a cell has.
  using EpochOf = std::function<std::uint64_t(int rank)>;
  /// `ranks`: of this node's cells. What a person should know goes to `terminal`. `root`: see MemoryWatch.
  Crew(boost::asio::io_context& io, const config::Config& config, coordinator::RankRange ranks,
       const os::Machine& machine, std::string programs, std::string run, Terminal& terminal,
       ServiceProcess::Ended ended, const EpochOf& epoch_of = {}, const std::string& root = "/");

  /// Starts every service. Throws Error when one cannot be started.
  void start_all();
  /// Throws Error when there is no such service. Never a standby.
  ServiceProcess& at(service::Kind kind, int rank);
  /// Without those that are beside a cell's four.
  const std::vector<std::unique_ptr<ServiceProcess>>& all() const { return services_; }

  // Optimizer servers beside those in force: a swap's standbys, and those whose place one has taken.
  /// Throws Error when it cannot be started.
  void start_standby(int rank, std::uint64_t epoch);
  /// nullptr: there is none, or it has gone.
  ServiceProcess* standby_of(int rank);
  /// The standby becomes the cell's optimizer server, and is started when it does not run; the one before ends by
  /// itself.
  void promote(int rank);
  /// Kills all standbys. Not from the `ended` of one: those that have ended are forgotten.
  void end_standbys(const std::string& why);
  /// A standby, or one whose place was taken.
  bool is_beside(const ServiceProcess& process) const;
  /// Whether such a process lives.
  bool any_beside() const;

  // What services say; throws Error for a process that is not the current one.
  void registered(const ServiceId& id, int pid);
  void heartbeat(const ServiceId& id, const fbs::Heartbeat& beat);
  /// The standby that this process is; nullptr: none.
  ServiceProcess* standby_with(int pid);

  /// The words of a cell's service, which say what it does and how long that may take.
  std::function<const step_protocol::ServiceWords&(const ServiceId&)> words;

  /// Called when a service is about to be killed for want of signs of life, with a sentence that names it: the
  /// moment to ask for stacks.
  std::function<void(const std::string&)> stands_still;

  /// Kills those whose signs of life say so, and those that are stopped or stand still (stall.h). Called several times
  /// a second; after a gap (this process stood still) nobody is blamed for silence. Warns when the memory of this node
  /// runs short.
  void watch(double now);
  /// Starts a dead one again. When it may not be: how the run ends because of it.
  std::optional<Outcome> replace(ServiceProcess& process, const os::Ending& ending);
  /// Kills one by a person's request; its replacement follows, with the binary that the order names if it names one.
  /// Throws Error when it is not running, see ServiceBinaries::order too.
  void restart(const coordinator::RestartOrder& order);
  /// Why an order was not followed.
  void refuse(const coordinator::RestartOrder& order, const std::string& why);
  /// Takes a fault that a process reports of itself when its binary is on trial: then it costs the trial alone.
  bool take_fault_on_trial(const ServiceId& id, int pid, const std::string& text);
  const ServiceBinaries& binaries() const { return binaries_; }

  /// A worker or a data service.
  static bool computes(service::Kind kind);
  /// Kills what computes or feeds it, workers and data services: the world is left, and its memory saved. Their ends
  /// are told as any others.
  void end_workers(const std::string& why);
  /// Starts those that were ended so again.
  void start_workers();
  bool any_worker_alive() const;

  bool any_alive() const;
  bool all_running() const;  // or finished
  bool workers_finished() const;
  int restarts() const;  // of all services since this launcher began
  /// What is known here of the newest restarts, that of this launcher included.
  const std::vector<coordinator::RestartEvent>& restart_events() const { return notes_.events(); }
  void signal_all(int number, const std::string& why);
  /// Every service that takes signals logs what it does and writes its stacks (service::stacks_file).
  void ask_for_stacks();
  void cancel_restarts();

  /// Seconds; when a checkpoint service here made progress last. 0: none has.
  double checkpoint_grown() const;
  /// Sum of the memory that the services' processes hold for themselves alone, in bytes (shared segments excluded).
  double private_bytes() const;

 private:
  struct Standby {
    std::unique_ptr<ServiceProcess> process;
    bool superseded = false;  // it was in force, and ends by itself
    double since = 0;         // seconds; superseded
  };
  std::unique_ptr<ServiceProcess> make(const ServiceId& id);
  ServiceProcess& current(const ServiceId& id, int pid);
  std::vector<ServiceProcess*> everyone() const;
  std::map<int, std::string> names_by_process() const;
  void watch_beside(double now);
  void look(ServiceProcess& process, const VitalLimits& limits, double now);
  std::optional<Stall> fault_of(ServiceProcess& process, const VitalLimits& limits, double now);
  std::optional<OperationSigns> operation_of(const ServiceProcess& process) const;
  VitalLimits limits() const;
  os::Command command_of(const ServiceId& id) const;
  bool ends_on_trial(ServiceProcess& process, const os::Ending& ending);
  void watch_trials(double now);
  std::string describe(const ServiceProcess& process, const os::Ending& ending);

  boost::asio::io_context& io_;
  const config::Config& config_;
  os::Machine machine_;
  std::string programs_, run_;
  ServiceProcess::Ended ended_;
  Terminal& terminal_;
  MemoryWatch memory_;
  RestartNotes notes_;
  ServiceBinaries binaries_;
  std::vector<std::unique_ptr<ServiceProcess>> services_;
  std::vector<Standby> beside_;
  double watched_;  // seconds
};

}  // namespace ganymede::launcher
