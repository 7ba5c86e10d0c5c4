#include "common/os/process_look.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace ganymede::os {
namespace {

struct Stat {
  std::string name;  // of the thread; may hold anything
  char state = 0;
  double cpu_seconds = 0;
};

/// /proc/PID/stat: "12 (name) S ppid …", with utime and stime as the fields 14 and 15.
std::optional<Stat> read_stat(const std::string& path) {
  std::ifstream file(path);
  std::string line((std::istreambuf_iterator<char>(file)), {});
  auto begin = line.find('('), end = line.rfind(") ");
  if (begin == std::string::npos || end == std::string::npos) return std::nullopt;
  std::istringstream fields(line.substr(end + 2));
  Stat stat{.name = line.substr(begin + 1, end - begin - 1)};
  fields >> stat.state;
  std::string skipped;
  for (int field = 4; field < 14; ++field) fields >> skipped;
  double user = 0, system = 0;
  if (!(fields >> user >> system)) return std::nullopt;
  stat.cpu_seconds = (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  return stat;
}

}  // namespace

ProcessState process_state(int pid) {
  auto stat = read_stat(fmt::format("/proc/{}/stat", pid));
  if (!stat) return ProcessState::gone;
  if (stat->state == 'T') return ProcessState::stopped;
  return stat->state == 't' ? ProcessState::traced : ProcessState::lives;
}

std::optional<ThreadStates> thread_states(int pid, const std::vector<std::string_view>& except) {
  std::error_code error;
  std::filesystem::directory_iterator tasks(fmt::format("/proc/{}/task", pid), error), end;
  if (error) return std::nullopt;
  ThreadStates all;
  for (; !error && tasks != end; tasks.increment(error)) {
    auto stat = read_stat(tasks->path().string() + "/stat");
    auto left_out = [&](std::string_view prefix) { return stat->name.starts_with(prefix); };
    if (!stat || std::ranges::any_of(except, left_out)) continue;
    if (stat->state == 'R') ++all.running;
    if (stat->state == 'D' || stat->state == 'I' || stat->state == 't') ++all.blocked;
    all.cpu_seconds += stat->cpu_seconds;
  }
  return all;
}

}  // namespace ganymede::os
