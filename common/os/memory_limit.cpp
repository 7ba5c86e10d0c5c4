#include "common/os/memory_limit.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

namespace ganymede::os {
namespace {

namespace fs = std::filesystem;

/// The number after `name` in a file of lines "name number".
std::optional<std::uint64_t> entry(const fs::path& path, const std::string& name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string key;
    std::uint64_t value = 0;
    if (words >> key >> value && key == name) return value;
  }
  return std::nullopt;
}

/// The number that is the whole file; nothing when there is none ("max", or no such file).
std::optional<std::uint64_t> number(const fs::path& path) {
  std::ifstream file(path);
  std::uint64_t value = 0;
  if (file >> value) return value;
  return std::nullopt;
}

/// Names of one version of the control-group interface.
struct Interface {
  const char *root, *limit, *usage, *reclaimable;
};
constexpr Interface version2 = {"/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"};
constexpr Interface version1 = {"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
                                "total_inactive_file"};

void lower(Memory& memory, const Interface& names, const fs::path& folder) {
  auto limit = number(folder / names.limit);
  if (!limit) return;
  memory.total = std::min(memory.total, *limit);
  std::uint64_t used = number(folder / names.usage).value_or(0);
  used -= std::min(used, entry(folder / "memory.stat", names.reclaimable).value_or(0));
  memory.available = std::min(memory.available, *limit - std::min(*limit, used));
}

/// Lowers by the limits of a group and of all groups above it.
void lower_by_group(Memory& memory, const Interface& names, std::string group) {
  fs::path root = names.root;
  while (group.starts_with('/')) group.erase(0, 1);
  fs::path folder = root / group;
  if (!fs::exists(folder / names.usage)) folder = root;  // a container sees its own group as the root
  for (;; folder = folder.parent_path()) {
    lower(memory, names, folder);
    if (folder == root || !folder.has_relative_path()) return;
  }
}

}  // namespace

Memory memory_within_limits() {
  Memory memory;
  memory.total = entry("/proc/meminfo", "MemTotal:").value_or(0) * 1024;
  memory.available = entry("/proc/meminfo", "MemAvailable:").value_or(0) * 1024;
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    // "0::/path" (version 2) or "5:memory:/path" (version 1)
    auto first = line.find(':');
    auto second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    std::string group = line.substr(second + 1);
    if (controllers == ",,") lower_by_group(memory, version2, group);
    if (controllers.find(",memory,") != std::string::npos) lower_by_group(memory, version1, group);
  }
  return memory;
}

}  // namespace ganymede::os
