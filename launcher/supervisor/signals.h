#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <functional>
#include <memory>

#include "common/os/fd.h"

namespace ganymede::launcher {

/// SIGINT, SIGTERM, SIGUSR1 and SIGUSR2 of this process as a file descriptor. os::block_signals comes first.
class Signals {
 public:
  Signals();
  int fd() const { return fd_.get(); }
  /// The next signal that has arrived, or 0.
  int take();

  /// From now on `handle` is called in the io_context's thread for each signal, until `ignore`.
  void watch(boost::asio::io_context& io, std::function<void(int)> handle);
  void ignore() { descriptor_.reset(); }

 private:
  void wait();
  os::Fd fd_;
  std::unique_ptr<boost::asio::posix::stream_descriptor> descriptor_;
  std::function<void(int)> handle_;
};

/// Why a launcher ends that was stopped while it had no services.
constexpr const char* stopped_text = "Stopped; the same command goes on.";

/// Whether a signal means that the run is to end in order: all but SIGUSR1. SIGUSR2 is what a batch system is asked to
/// send some time before it ends a job.
bool means_stop(int number);

/// Throws Error(can_go_on) when a signal that means a stop has come.
void stop_if_signalled(Signals& signals);

}  // namespace ganymede::launcher
