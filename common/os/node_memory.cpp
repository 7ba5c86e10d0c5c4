#include "common/os/node_memory.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "common/os/kernel_numbers.h"

namespace ganymede::os {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kib = 1024;

/// The number of a folder "node12"; nothing for any other.
std::optional<int> node_number(const std::string& folder) {
  if (!folder.starts_with("node")) return std::nullopt;
  int number = 0;
  const char* end = folder.data() + folder.size();
  auto parsed = std::from_chars(folder.data() + 4, end, number);
  if (parsed.ec != std::errc{} || parsed.ptr != end) return std::nullopt;
  return number;
}

std::optional<NodeMemory> read_node(int node, const fs::path& file) {
  auto total = kernel_entry(file, "MemTotal:"), free = kernel_entry(file, "MemFree:");
  if (!total || !free || *total == 0) return std::nullopt;
  std::uint64_t pages = kernel_entry(file, "FilePages:").value_or(0);
  pages -= std::min(pages, kernel_entry(file, "Shmem:").value_or(0));
  std::uint64_t available = *free + pages + kernel_entry(file, "SReclaimable:").value_or(0);
  return NodeMemory{.node = node, .has_cores = true, .total = *total * kib, .available = available * kib};
}

}  // namespace

std::vector<NodeMemory> memory_of_nodes(const std::string& root) {
  fs::path folder = fs::path(root) / "sys/devices/system/node";
  std::vector<int> with_cores = kernel_list(folder / "has_cpu");
  std::vector<NodeMemory> nodes;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none)) {
    auto number = node_number(entry.path().filename().string());
    auto memory = number ? read_node(*number, entry.path() / "meminfo") : std::nullopt;
    if (!memory) continue;
    memory->has_cores =
        with_cores.empty() || std::find(with_cores.begin(), with_cores.end(), *number) != with_cores.end();
    nodes.push_back(*memory);
  }
  std::sort(nodes.begin(), nodes.end(), [](const auto& a, const auto& b) { return a.node < b.node; });
  return nodes;
}

}  // namespace ganymede::os
