#include "common/service/signal_watch.h"

#include <signal.h>

#include "common/base/log.h"
#include "common/os/signals.h"

namespace ganymede::service {
namespace {

constexpr int look_up_milliseconds = 50;

void watch(const std::atomic<bool>& stopping, std::atomic<bool>& finishing,
           const std::function<std::string()>& detail) {
  while (!stopping.load()) {
    int signal = os::wait_signal(look_up_milliseconds);
    if (signal == SIGUSR1) log::info("now: {}", detail());
    if (signal != SIGINT && signal != SIGTERM) continue;
    log::info("finishing because of {}", signal == SIGINT ? "SIGINT" : "SIGTERM");
    finishing.store(true, std::memory_order_release);
  }
}

}  // namespace

SignalWatch::SignalWatch(std::atomic<bool>& finishing, std::function<std::string()> detail)
    : thread_([this, &finishing, detail = std::move(detail)] { watch(stopping_, finishing, detail); }) {}

SignalWatch::~SignalWatch() {
  stopping_.store(true);
  thread_.join();
}

}  // namespace ganymede::service
