#include "common/service/signal_watch.h"

#include <signal.h>

#include "common/base/log.h"
#include "common/os/signals.h"
#include "common/os/stacks.h"

namespace ganymede::service {
namespace {

constexpr int look_up_milliseconds = 50;

void show(const std::string& detail, const std::string& stacks) {
  log::info("now: {}", detail);
  try {
    os::write_stacks(stacks);
  } catch (const std::exception& error) {
    log::warn("{}", error.what());
  }
}

void watch(const std::atomic<bool>& stopping, std::atomic<bool>& finishing, const std::function<std::string()>& detail,
           const std::string& stacks) {
  while (!stopping.load()) {
    int signal = os::wait_signal(look_up_milliseconds);
    if (signal == SIGUSR1) show(detail(), stacks);
    if (signal != SIGINT && signal != SIGTERM) continue;
    log::info("finishing because of {}", signal == SIGINT ? "SIGINT" : "SIGTERM");
    finishing.store(true, std::memory_order_release);
  }
}

}  // namespace

SignalWatch::SignalWatch(std::atomic<bool>& finishing, std::function<std::string()> detail, std::string stacks)
    : thread_([this, &finishing, detail = std::move(detail), stacks = std::move(stacks)] {
        watch(stopping_, finishing, detail, stacks);
      }) {}

SignalWatch::~SignalWatch() {
  stopping_.store(true);
  thread_.join();
}

}  // namespace ganymede::service
