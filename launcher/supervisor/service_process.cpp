#include "launcher/supervisor/service_process.h"

#include <fcntl.h>

#include <chrono>
#include <utility>

#include "common/base/log.h"

namespace ganymede::launcher {

ServiceProcess::ServiceProcess(boost::asio::io_context& io, ServiceId id, os::Command command,
                               RestartPolicy restarts_of, Ended ended)
    : policy(std::move(restarts_of)),
      io_(io),
      id_(id),
      command_(std::move(command)),
      wrapped_(command_.output_file.empty()),
      ended_(std::move(ended)),
      timer_(io) {}

void ServiceProcess::run_from_now_on(os::Command command) {
  command_ = std::move(command);
  wrapped_ = command_.output_file.empty();
}

void ServiceProcess::start() {
  GANYMEDE_CHECK(!child_, "a second {} was started while process {} lives", id_.text(), pid());
  start_wanted_ = false;
  child_ = os::spawn(command_);
  phase = ServicePhase::starting;
  signs = VitalSigns{.started = now_seconds()};
  waits = finished = requested = false;
  detail.clear();
  killed_because.clear();
  stood_since = 0;
  stall = {};
  own_pid_ = 0;
  fault.clear();
  condemned.clear();
  log::info("{} started as process {}", id_.text(), pid());
  watch();
}

void ServiceProcess::start_after(double seconds) {
  start_wanted_ = true;
  timer_.expires_after(std::chrono::microseconds(static_cast<long long>(seconds * 1e6)));
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (error || child_ || !start_wanted_) return;
    try {
      start();
    } catch (const Error& failure) {
      log::error("{}", failure.what());
      phase = ServicePhase::ended;
      ended_(*this, os::Ending{127, 0});
    }
  });
}

void ServiceProcess::cancel_restart() {
  start_wanted_ = false;  // its handler may be queued already
  timer_.cancel();
}

void ServiceProcess::signal(int number, const std::string& why) {
  if (!child_) return;
  if (!why.empty()) killed_because = why;
  os::send_signal(*child_, number);
}

void ServiceProcess::watch() {
  // Asio closes what it watches; the child keeps its own descriptor.
  int copy = fcntl(child_->pidfd.get(), F_DUPFD_CLOEXEC, 0);
  if (copy < 0) fail("No file descriptor is left to watch {}: raise the limit of open files (ulimit -n).", id_.text());
  descriptor_ = std::make_unique<boost::asio::posix::stream_descriptor>(io_, copy);
  descriptor_->async_wait(boost::asio::posix::stream_descriptor::wait_read,
                          [this](const boost::system::error_code& error) {
                            if (!error) on_readable();
                          });
}

void ServiceProcess::on_readable() {
  std::optional<os::Ending> ending = os::poll_ending(*child_);
  if (!ending) return watch();
  log::info("{} (process {}) ended: {}", id_.text(), pid(), ending->describe());
  descriptor_.reset();
  child_.reset();
  phase = ServicePhase::ended;
  ended_(*this, *ending);
}

}  // namespace ganymede::launcher
