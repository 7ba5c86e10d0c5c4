#include "tests/support/process_wait.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "common/base/deadline.h"
#include "common/base/error.h"
#include "common/os/files.h"
#include "tests/support/temporary_folder.h"

namespace ganymede::test {

os::Ending wait_for_end(const os::Child& child, double seconds) {
  seconds *= patience;
  if (auto ending = os::await_ending(child, Deadline::after_seconds(seconds))) return *ending;
  fail("Process {} did not end within {} s and was killed.", child.pid, seconds);
}

void wait_until(const std::function<bool()>& holds, double seconds, const std::string& what) {
  seconds *= patience;
  Deadline deadline = Deadline::after_seconds(seconds);
  while (!holds()) {
    if (deadline.passed()) fail("Waited {} s in vain: {}.", seconds, what);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

Finished run_program(const std::vector<std::string>& arguments, double seconds) {
  TemporaryFolder folder;
  os::Command command;
  command.arguments = arguments;
  command.output_file = folder.path() + "/out";
  auto ending = wait_for_end(os::spawn(command), seconds);
  return {ending.signal == 0 ? ending.exit_code : -1, os::read_file(command.output_file)};
}

std::vector<int> processes_with(const std::string& text) {
  std::vector<int> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    std::string name = entry.path().filename().string();
    if (!std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isdigit(c) != 0; })) continue;
    std::ifstream file(entry.path() / "cmdline");
    std::ostringstream line;
    line << file.rdbuf();
    if (line.str().find(text) != std::string::npos && std::stoi(name) != getpid()) found.push_back(std::stoi(name));
  }
  return found;
}

}  // namespace ganymede::test
