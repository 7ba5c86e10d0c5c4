#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <map>

#include "launcher/cli/doctor.h"

namespace ganymede::cli {
namespace {

namespace fs = std::filesystem;

struct Process {
  int parent = 0;
  std::string name;  // at most 15 characters of it, as the kernel keeps it
};

/// All processes that can be read, by id.
std::map<int, Process> all_processes() {
  std::map<int, Process> processes;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    std::string file = entry.path().filename().string();
    int pid = 0;
    if (std::from_chars(file.data(), file.data() + file.size(), pid).ptr != file.data() + file.size()) continue;
    std::ifstream stat(entry.path() / "stat");
    std::string text;
    std::getline(stat, text);
    auto open = text.find('('), close = text.rfind(')');
    if (open == std::string::npos || close == std::string::npos || close + 4 >= text.size()) continue;
    Process process;
    process.name = text.substr(open + 1, close - open - 1);
    process.parent = std::atoi(text.c_str() + close + 4);  // ") S 123 …"
    processes[pid] = process;
  }
  return processes;
}

/// Whether a keeper is the process itself or above it.
bool kept(const std::map<int, Process>& processes, int pid) {
  for (int steps = 0; steps < 64; ++steps) {
    auto found = processes.find(pid);
    if (found == processes.end()) return false;
    if (found->second.name.starts_with("ganymede-keep")) return true;
    pid = found->second.parent;
  }
  return false;
}

/// Services and launchers live under a keeper; the commands (pack, eval, …) of the same programs do not.
bool is_service(int pid) {
  std::ifstream file(fmt::format("/proc/{}/cmdline", pid));
  std::string program, first;
  std::getline(file, program, '\0');
  std::getline(file, first, '\0');
  return first == "--run";
}

}  // namespace

Finding examine_leftovers() {
  auto processes = all_processes();
  std::string orphans;
  int runs = 0;
  for (const auto& [pid, process] : processes) {
    if (process.name.starts_with("ganymede-keep")) ++runs;
    if (!process.name.starts_with("ganymede-") || kept(processes, pid) || !is_service(pid)) continue;
    orphans += fmt::format("{}{}", orphans.empty() ? "" : " ", pid);
  }
  if (!orphans.empty())
    return {"leftovers", false,
            fmt::format("processes of a run whose keeper is gone: end them with kill -9 {}", orphans)};
  return {"leftovers", true, fmt::format("none of earlier runs; {} {} alive", runs, runs == 1 ? "run is" : "runs are")};
}

}  // namespace ganymede::cli
