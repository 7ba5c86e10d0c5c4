#include "services/data/interruption.h"

#include <signal.h>

#include "common/base/error.h"

namespace ganymede::data {
namespace {

constexpr int signals[] = {SIGINT, SIGTERM, SIGHUP};
volatile sig_atomic_t interrupted = 0;

}  // namespace

Interruption::Interruption() {
  interrupted = 0;
  struct sigaction action {};
  action.sa_handler = [](int) { interrupted = 1; };
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  for (int signal : signals) ::sigaction(signal, &action, nullptr);
}

Interruption::~Interruption() {
  for (int signal : signals) ::signal(signal, SIG_DFL);
}

void stop_if_interrupted() {
  if (interrupted)
    throw Error(ExitCode::can_go_on,
                "Stopped before the dataset was complete; nothing was kept, the same command "
                "starts again.");
}

}  // namespace ganymede::data
