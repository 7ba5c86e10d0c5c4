#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "common/service/running_context.h"

namespace ganymede::service {

/// Tells the launcher that the service is there. Throws Error when the launcher does not answer or refuses it.
void register_at_launcher(RunningContext& context);

/// What the kernel calls that thread.
constexpr const char* heartbeat_thread = "heartbeat";

/// A thread that sends a Heartbeat every 200 ms, with a client of its own, and obeys the Orders that come back. A
/// launcher that cannot be reached is logged once after 10 s, and asked on: it may be stopped or busy.
class Heartbeat {
 public:
  explicit Heartbeat(RunningContext& context);
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

 private:
  void beat();
  bool pause();

  RunningContext& context_;
  std::unique_ptr<msg::Client> client_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace ganymede::service
