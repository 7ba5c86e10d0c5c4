#include "launcher/keeper/leftovers.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "common/base/deadline.h"
#include "common/base/error.h"

namespace ganymede::keeper {
namespace {

/// Parent of a process: the second field behind the name, which may itself hold spaces and parentheses.
int parent_of(const std::filesystem::path& folder) {
  std::ifstream file(folder / "stat");
  std::string line;
  std::getline(file, line);
  auto name_end = line.rfind(") ");
  return name_end == std::string::npos ? -1 : std::atoi(line.c_str() + std::min(name_end + 4, line.size()));
}

std::vector<int> children() {
  std::vector<int> found;
  std::error_code error;
  for (std::filesystem::directory_iterator at("/proc", error), end; !error && at != end; at.increment(error)) {
    std::string name = at->path().filename().string();
    if (std::isdigit(static_cast<unsigned char>(name[0])) == 0) continue;
    if (parent_of(at->path()) == ::getpid()) found.push_back(std::atoi(name.c_str()));
  }
  return found;
}

}  // namespace

void reap_all_but(int pid) {
  siginfo_t info{};
  while (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0 && info.si_pid != pid) {
    ::waitpid(info.si_pid, nullptr, 0);
    info = {};
  }
}

void end_leftovers() {
  Deadline deadline = Deadline::after_seconds(10);
  while (true) {
    int last = 0;
    // A child's id stays its own until we reap it, so this kills nobody else.
    for (int child : children()) ::kill(last = child, SIGKILL);
    while (::waitpid(-1, nullptr, WNOHANG) > 0) continue;
    if (::waitpid(-1, nullptr, WNOHANG) < 0 && errno == ECHILD) return;
    if (deadline.passed())
      fail("Process {} of the ended launcher cannot be ended: this node needs its administrator.", last);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

}  // namespace ganymede::keeper
