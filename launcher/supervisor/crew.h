#pragma once

#include <boost/asio/io_context.hpp>
#include <memory>
#include <string>
#include <vector>

#include "common/config/config.h"
#include "common/os/machine.h"
#include "launcher/supervisor/service_process.h"

namespace ganymede::launcher {

/// All services of this node's cells. Used from the io_context's thread alone.
class Crew {
 public:
  Crew(boost::asio::io_context& io, const config::Config& config, const os::Machine& machine,
       const std::string& programs, const std::string& run, const ServiceProcess::Ended& ended);

  /// Starts every service. Throws Error when one cannot be started.
  void start_all();
  /// Throws Error when there is no such service.
  ServiceProcess& at(service::Kind kind, int rank);
  const std::vector<std::unique_ptr<ServiceProcess>>& all() const { return services_; }

  bool any_alive() const;
  bool workers_finished() const;
  int restarts() const;  // of all services since this launcher began
  void signal_all(int number, const std::string& why);
  void cancel_restarts();

  /// Sum of the memory that the services' processes hold for themselves alone, in bytes (shared segments excluded).
  double private_bytes() const;

 private:
  std::vector<std::unique_ptr<ServiceProcess>> services_;
};

}  // namespace ganymede::launcher
