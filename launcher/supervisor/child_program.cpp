#include "launcher/supervisor/child_program.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "common/base/error.h"
#include "common/os/files.h"

namespace ganymede::launcher {
namespace {

std::optional<os::Ending> wait_for_end(const os::Child& child, Deadline deadline) {
  while (true) {
    if (auto ending = os::poll_ending(child)) return ending;
    if (deadline.passed()) return std::nullopt;
    pollfd watched{child.pidfd.get(), POLLIN, 0};
    poll(&watched, 1, 100);
  }
}

os::Ending end_child(const os::Child& child, const std::string& program) {
  os::send_signal(child, SIGTERM);
  if (auto ending = wait_for_end(child, Deadline::after_seconds(5))) return *ending;
  os::send_signal(child, SIGKILL);
  if (auto ending = wait_for_end(child, Deadline::after_seconds(10))) return *ending;
  fail("{} (process {}) cannot be ended.", program, child.pid);
}

}  // namespace

os::Ending run_child(const os::Command& command, Signals& signals, Deadline deadline) {
  const std::string& program = command.arguments[0];
  os::Child child = os::spawn(command);
  while (true) {
    if (auto ending = os::poll_ending(child)) return *ending;
    if (means_stop(signals.take())) {
      bool told = end_child(child, program).exit_code == static_cast<int>(ExitCode::can_go_on);
      if (told && command.output_file.empty()) throw ToldError(ExitCode::can_go_on, stopped_text);
      throw Error(ExitCode::can_go_on, stopped_text);
    }
    if (deadline.passed()) {
      end_child(child, program);
      fail("{} did not end in time.", program);
    }
    pollfd watched[] = {{child.pidfd.get(), POLLIN, 0}, {signals.fd(), POLLIN, 0}};
    poll(watched, 2, 200);
  }
}

ChildResult run_child_captured(os::Command command, const std::string& output, Signals& signals, Deadline deadline) {
  unlink(output.c_str());
  command.output_file = output;
  ChildResult result;
  result.ending = run_child(command, signals, deadline);
  result.output = os::read_file(output);
  unlink(output.c_str());
  return result;
}

}  // namespace ganymede::launcher
