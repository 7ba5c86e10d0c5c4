#include "tests/support/kills/processes.h"

#include <sched.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "common/base/error.h"

namespace ganymede::test {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> arguments_of(const fs::path& process) {
  std::ifstream file(process / "cmdline");
  std::vector<std::string> arguments;
  for (std::string one; std::getline(file, one, '\0');) arguments.push_back(one);
  return arguments;
}

bool has_option(const std::vector<std::string>& arguments, const std::string& name, const std::string& value) {
  auto found = std::find(arguments.begin(), arguments.end(), name);
  return found != arguments.end() && found + 1 != arguments.end() && *(found + 1) == value;
}

/// "S" of "/proc/…/stat"; 0: it is gone.
char state_of(const fs::path& stat) {
  std::ifstream file(stat);
  std::string line;
  std::getline(file, line);
  auto end = line.rfind(") ");  // the name before it may hold anything
  return end != std::string::npos && end + 2 < line.size() ? line[end + 2] : 0;
}

}  // namespace

int find_service(const std::string& run, service::Kind kind, int rank) {
  std::string program = std::string("ganymede-") + service::name(kind);
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    std::string name = entry.path().filename().string();
    if (!std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isdigit(c) != 0; })) continue;
    auto arguments = arguments_of(entry.path());
    if (arguments.empty() || fs::path(arguments[0]).filename() != program) continue;
    if (has_option(arguments, "--run", run) && has_option(arguments, "--rank", std::to_string(rank)))
      return std::stoi(name);
  }
  return 0;
}

bool all_threads_stopped(int pid) {
  std::error_code error;
  int threads = 0;
  for (const auto& entry : fs::directory_iterator(fmt::format("/proc/{}/task", pid), error)) {
    char state = state_of(entry.path() / "stat");
    if (state == 0) continue;
    if (state != 'T') return false;
    ++threads;
  }
  return !error && threads > 0;
}

Attention::Attention() {
  sched_param first{};
  first.sched_priority = 1;
  ::sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &first);
}

Attention::~Attention() {
  sched_param usual{};
  ::sched_setscheduler(0, SCHED_OTHER, &usual);
}

}  // namespace ganymede::test
