#pragma once

#include <atomic>
#include <functional>
#include <thread>

namespace ganymede::service {

/// A thread that takes the signals which `os::block_signals` holds back: SIGINT and SIGTERM set `finishing`, SIGUSR1
/// logs what `detail` says the service does now, and writes the stacks of all threads to `stacks`.
class SignalWatch {
 public:
  SignalWatch(std::atomic<bool>& finishing, std::function<std::string()> detail, std::string stacks);
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

 private:
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace ganymede::service
