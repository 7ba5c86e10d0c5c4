#include "common/os/memory_limit.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>

#include "common/os/kernel_numbers.h"
#include "common/os/node_memory.h"

namespace ganymede::os {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t unknown = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t kib = 1024;

/// Names of one version of the control-group interface.
struct Interface {
  const char *root, *limit, *usage, *reclaimable;
};
constexpr Interface version2 = {"sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"};
constexpr Interface version1 = {"sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
                                "total_inactive_file"};

void lower(Memory& memory, const Interface& names, const fs::path& folder) {
  auto limit = kernel_number(folder / names.limit);
  if (!limit) return;
  memory.total = std::min(memory.total, *limit);
  std::uint64_t used = kernel_number(folder / names.usage).value_or(0);
  used -= std::min(used, kernel_entry(folder / "memory.stat", names.reclaimable).value_or(0));
  std::uint64_t left = *limit - std::min(*limit, used);
  if (left >= memory.available) return;
  memory.available = left;
  memory.limit_file = folder / names.limit;
}

/// Lowers by the limits of a group and of all groups above it.
void lower_by_group(Memory& memory, const Interface& names, const fs::path& root, std::string group) {
  fs::path top = root / names.root;
  while (group.starts_with('/')) group.erase(0, 1);
  fs::path folder = top / group;
  if (!fs::exists(folder / names.usage)) folder = top;  // a container sees its own group as the root
  for (;; folder = folder.parent_path()) {
    lower(memory, names, folder);
    if (folder == top || !folder.has_relative_path()) return;
  }
}

/// MemTotal and MemAvailable count what lies on nodes without cores as well.
void leave_out_devices(Memory& memory, const std::string& root) {
  auto nodes = memory_of_nodes(root);
  if (std::all_of(nodes.begin(), nodes.end(), [](const auto& node) { return node.has_cores; })) return;
  std::uint64_t total = 0, available = 0;
  for (const auto& node : nodes) {
    if (!node.has_cores) continue;
    total += node.total;
    available += node.available;
  }
  memory.total = std::min(memory.total, total);
  memory.available = std::min(memory.available, available);
}

std::uint64_t in_bytes(std::optional<std::uint64_t> entry) { return entry ? *entry * kib : unknown; }

}  // namespace

Memory memory_within_limits(const std::string& root) {
  fs::path proc = fs::path(root) / "proc";
  Memory memory;
  memory.total = in_bytes(kernel_entry(proc / "meminfo", "MemTotal:"));
  memory.available = in_bytes(kernel_entry(proc / "meminfo", "MemAvailable:"));
  leave_out_devices(memory, root);
  std::ifstream groups(proc / "self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    // "0::/path" (version 2) or "5:memory:/path" (version 1)
    auto first = line.find(':');
    auto second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    std::string group = line.substr(second + 1);
    if (controllers == ",,") lower_by_group(memory, version2, root, group);
    if (controllers.find(",memory,") != std::string::npos) lower_by_group(memory, version1, root, group);
  }
  return memory.total == unknown || memory.available == unknown ? Memory{} : memory;
}

std::uint64_t out_of_memory_kills(const std::string& root) {
  return kernel_entry(fs::path(root) / "proc/vmstat", "oom_kill").value_or(0);
}

}  // namespace ganymede::os
