#include "launcher/cli/ctl_drain.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "common/base/deadline.h"
#include "common/base/error.h"
#include "common/base/text.h"
#include "launcher/cli/ask_launcher.h"
#include "launcher/cli/run_access.h"
#include "launcher/cli/status_view.h"
#include "launcher/keeper/failure.h"
#include "launcher/supervisor/closing.h"
#include "launcher/supervisor/go_on.h"

namespace ganymede::cli {
namespace {

constexpr auto look_every = std::chrono::milliseconds(100);

/// False: the run has ended meanwhile.
bool order() {
  try {
    ask([](flatbuffers::FlatBufferBuilder& builder) {
      return msg::Message::body(fbs::CreateStopRequest(builder, false));
    });
    return true;
  } catch (const Error&) {
    if (run_is_alive()) throw;
    return false;
  }
}

void show_end() {
  if (std::string failure = keeper::read_failure(); !failure.empty()) fail("The run failed: {}", failure);
  fmt::print("{}\n", idle_text("stopped", ""));
  auto go_on = launcher::read_go_on();
  if (!go_on) return fmt::print("the command that it was started with goes on\n");
  const char* here = std::getenv("PWD");
  bool elsewhere = !go_on->folder.empty() && (here == nullptr || go_on->folder != here);
  fmt::print("go on with: {}{}\n", elsewhere ? fmt::format("cd {} && ", launcher::shell_word(go_on->folder)) : "",
             go_on->command);
}

}  // namespace

void drain(const std::string& run, double seconds) {
  enter_run(run);
  if (!run_is_alive() || !order()) return show_end();
  fmt::print("the run finishes its current step, writes a checkpoint and stops\n");
  std::fflush(stdout);
  if (seconds == 0) return;
  Deadline deadline = Deadline::after_seconds(seconds);
  while (run_is_alive()) {
    if (deadline.passed())
      fail(
          "The run in {} has not ended after {}: it goes on stopping; see `ganymede ctl {} status`, or wait longer "
          "with "
          "--wait.",
          run, human_seconds(seconds), run);
    std::this_thread::sleep_for(look_every);
  }
  show_end();
}

}  // namespace ganymede::cli
