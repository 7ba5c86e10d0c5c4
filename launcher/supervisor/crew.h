#pragma once

#include <boost/asio/io_context.hpp>
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
#include "launcher/supervisor/service_process.h"
#include "launcher/supervisor/terminal.h"
#include "schemas/messages_generated.h"

namespace ganymede::launcher {

/// All services of this node's cells. Used from the io_context's thread alone.
class Crew {
 public:
  /// `ranks`: of this node's cells. What a person should know goes to `terminal`. `root`: see MemoryWatch.
  Crew(boost::asio::io_context& io, const config::Config& config, coordinator::RankRange ranks,
       const os::Machine& machine, const std::string& programs, const std::string& run, Terminal& terminal,
       const ServiceProcess::Ended& ended, const std::string& root = "/");

  /// Starts every service. Throws Error when one cannot be started.
  void start_all();
  /// Throws Error when there is no such service.
  ServiceProcess& at(service::Kind kind, int rank);
  const std::vector<std::unique_ptr<ServiceProcess>>& all() const { return services_; }

  // What services say; throws Error for a process that is not the current one.
  void registered(const ServiceId& id, int pid);
  void heartbeat(const ServiceId& id, const fbs::Heartbeat& beat);

  /// Kills those whose signs of life say so. Called several times a second; after a gap (this process stood still)
  /// nobody is blamed for silence. Warns when the memory of this node runs short.
  void watch(double now);
  /// Starts a dead one again. When it may not be: how the run ends because of it.
  std::optional<Outcome> replace(ServiceProcess& process, const os::Ending& ending);
  /// Kills one by a person's request; its replacement follows. Throws Error when it is not running.
  void restart(const ServiceId& id);

  bool any_alive() const;
  bool all_running() const;  // or finished
  bool workers_finished() const;
  int restarts() const;  // of all services since this launcher began
  void signal_all(int number, const std::string& why);
  void cancel_restarts();

  /// Sum of the memory that the services' processes hold for themselves alone, in bytes (shared segments excluded).
  double private_bytes() const;

 private:
  std::map<int, std::string> names_by_process() const;

  const config::Config& config_;
  Terminal& terminal_;
  MemoryWatch memory_;
  std::vector<std::unique_ptr<ServiceProcess>> services_;
  double watched_;  // seconds
};

}  // namespace ganymede::launcher
