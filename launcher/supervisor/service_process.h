#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "common/base/deadline.h"
#include "common/os/process.h"
#include "launcher/supervisor/restart_policy.h"
#include "launcher/supervisor/service_id.h"
#include "launcher/supervisor/stall.h"
#include "launcher/supervisor/vital_signs.h"

namespace ganymede::launcher {

enum class ServicePhase { absent, starting, running, ended };

/// One service: its current process, watched through its pidfd, and what is known of it. A replacement can be started
/// only after the end of the one before was seen. Used from the io_context's thread alone, which must be the thread
/// that starts processes (they die with it).
class ServiceProcess {
 public:
  using Ended = std::function<void(ServiceProcess&, const os::Ending&)>;

  /// `ended` is called in the io_context's thread each time its process ended and was reaped.
  ServiceProcess(boost::asio::io_context& io, ServiceId id, os::Command command, RestartPolicy policy, Ended ended);

  /// What is started from now on.
  void run_from_now_on(os::Command command);
  /// Starts the process. Throws Error when that is impossible. The process before must have ended.
  void start();
  /// Starts it after `seconds`, unless `cancel_restart` comes first. A start that fails counts as a death.
  void start_after(double seconds);
  void cancel_restart();

  /// Sends a signal through the pidfd. `why` is kept for the message about its end, unless it is empty. No effect when
  /// it has no process.
  void signal(int number, const std::string& why);

  const ServiceId& id() const { return id_; }
  bool alive() const { return child_.has_value(); }
  int pid() const { return child_ ? child_->pid : 0; }
  /// Whether another program, a debugger perhaps, stands between it and its service.
  bool wrapped() const { return wrapped_; }
  /// The process of the service itself: as it says, once it has registered.
  int own_pid() const { return own_pid_ != 0 ? own_pid_ : pid(); }
  void registered_as(int pid) { own_pid_ = pid; }
  /// Whether a message that names `pid` comes from the current process (a wrapper hides the service's own).
  bool is_current(int pid) const { return alive() && (wrapped_ || pid == child_->pid); }

  ServicePhase phase = ServicePhase::absent;
  VitalSigns signs;
  StallWatch stall;
  double came = 0;         // seconds, when it registered
  bool waits = false;      // it waits for others, as it says itself
  bool finished = false;   // it ended because its work is done
  bool requested = false;  // its coming end was ordered by a person and is no fault
  int restarts = 0;
  std::string detail;  // what it said last that it does
  std::string killed_because;
  std::string fault;           // that it reported of itself before its end
  std::string condemned;       // why it is about to be killed; empty: it is not
  double condemned_since = 0;  // seconds
  double stood_since = 0;      // when it began to stand still, if it was killed because of that; 0: it was not
  RestartPolicy policy;

 private:
  void watch();
  void on_readable();

  boost::asio::io_context& io_;
  ServiceId id_;
  os::Command command_;
  bool wrapped_;
  int own_pid_ = 0;
  Ended ended_;
  std::optional<os::Child> child_;
  std::unique_ptr<boost::asio::posix::stream_descriptor> descriptor_;
  boost::asio::steady_timer timer_;
  bool start_wanted_ = false;  // a start by the timer is still wanted
};

}  // namespace ganymede::launcher
