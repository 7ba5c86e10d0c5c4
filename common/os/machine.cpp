#include "common/os/machine.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "common/base/error.h"
#include "common/os/kernel_numbers.h"
#include "common/os/memory_limit.h"

namespace ganymede::os {
namespace {

std::vector<int> affinity() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) fail("CPU affinity cannot be read: {}.", std::strerror(errno));
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cores.push_back(cpu);
  }
  return cores;
}

std::uint64_t soft_limit(__rlimit_resource which) {
  rlimit limit{};
  return ::getrlimit(which, &limit) == 0 ? limit.rlim_cur : 0;
}

std::vector<int> nodes_with_cpus() {
  auto nodes = kernel_list("/sys/devices/system/node/has_cpu");
  return nodes.empty() ? std::vector<int>{0} : nodes;
}

/// Value of the first line of /proc/cpuinfo that starts with one of the names.
std::string cpuinfo(std::initializer_list<std::string_view> names) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    auto colon = line.find(':');
    if (colon == std::string::npos) continue;
    bool wanted = std::any_of(names.begin(), names.end(), [&](auto name) { return line.starts_with(name); });
    if (wanted) return colon + 2 <= line.size() ? line.substr(colon + 2) : "";
  }
  return "";
}

bool has_word(const std::string& words, std::string_view word) {
  std::istringstream stream(words);
  for (std::string next; stream >> next;) {
    if (next == word) return true;
  }
  return false;
}

}  // namespace

Machine inspect_machine() {
  Machine m;
  m.cores = static_cast<int>(affinity().size());
  auto memory = memory_within_limits();
  m.memory_total = memory.total;
  m.memory_available = memory.available;
  m.memory_limit_file = memory.limit_file;
  m.page_size = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  m.numa_nodes = nodes_with_cpus();
  m.open_files_limit = soft_limit(RLIMIT_NOFILE);
  m.locked_memory_limit = soft_limit(RLIMIT_MEMLOCK);
  std::string flags = cpuinfo({"flags", "Features"});
  m.avx2 = has_word(flags, "avx2");
  m.avx512 = has_word(flags, "avx512f") && has_word(flags, "avx512bw") && has_word(flags, "avx512vl");
  m.avx512_bf16 = has_word(flags, "avx512_bf16");
  m.cpu_name = cpuinfo({"model name", "CPU part"});
  return m;
}

std::uint64_t free_disk_bytes(const std::string& path) {
  auto at = std::filesystem::absolute(path);
  while (!std::filesystem::exists(at) && at.has_relative_path()) at = at.parent_path();
  struct statvfs status {};
  if (::statvfs(at.c_str(), &status) != 0) fail("Free space of {} cannot be read: {}.", path, std::strerror(errno));
  return std::uint64_t{status.f_bavail} * status.f_frsize;
}

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "an unknown host";
  return name.data();
}

std::uint64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t total = 0, resident = 0;
  file >> total >> resident;
  return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

std::vector<int> cores_of(int local_rank, int ranks, const Machine& machine) {
  auto all = affinity();
  int usable = std::min<int>(machine.cores, static_cast<int>(all.size()));
  if (ranks < 1 || local_rank < 0 || local_rank >= ranks || usable < ranks) return all;
  // Blocks differ by one core at most when the cores do not divide.
  auto edge = [&](int rank) { return all.begin() + static_cast<std::ptrdiff_t>(rank) * usable / ranks; };
  return {edge(local_rank), edge(local_rank + 1)};
}

void pin_this_thread(const std::vector<int>& cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int core : cores) CPU_SET(core, &set);
  if (::sched_setaffinity(0, sizeof set, &set) != 0) {
    fail("This thread cannot be pinned to {} cores: {}.", cores.size(), std::strerror(errno));
  }
}

}  // namespace ganymede::os
