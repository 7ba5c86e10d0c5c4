#include "launcher/supervisor/host_budget.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "common/base/error.h"
#include "common/base/text.h"

namespace ganymede::launcher {
namespace {

std::string bytes(std::uint64_t count) { return human_bytes(static_cast<double>(count)); }

/// "2 cells (834 MiB each, most of it master 512 MiB and worker process 320 MiB)".
std::string cells_with_parts(const HostBudget& budget, int cells) {
  std::vector<HostBudget::Row> largest = budget.rows;
  std::sort(largest.begin(), largest.end(), [](const auto& a, const auto& b) {
    return a.bytes_per_cell != b.bytes_per_cell ? a.bytes_per_cell > b.bytes_per_cell : a.what < b.what;
  });
  std::string parts;
  for (std::size_t i = 0; i < std::min<std::size_t>(2, largest.size()); ++i)
    parts += fmt::format("{}{} {}", i == 0 ? "" : " and ", largest[i].what, bytes(largest[i].bytes_per_cell));
  return fmt::format("{} {} ({} each, most of it {})", cells, cells == 1 ? "cell" : "cells",
                     bytes(budget.needed_per_cell()), parts);
}

/// " (NUMA node 0: 3 GiB, node 1: 1 GiB)".
std::string free_on_nodes(const HostBudget& budget) {
  std::string list;
  for (const auto& node : budget.nodes)
    list += fmt::format("{}{} {}: {}", list.empty() ? "NUMA " : ", ", "node", node.node, bytes(node.available));
  return list.empty() ? "" : fmt::format(" ({})", list);
}

/// " The largest holders of memory here: …"; empty when nobody is known.
std::string held_by(const Holders& holders) {
  std::string list;
  for (const auto& holder : holders()) list += (list.empty() ? "" : "; ") + os::describe(holder);
  return list.empty() ? "" : " The largest holders of memory here: " + list + ".";
}

constexpr const char* smaller =
    "use fewer parallel.ranks, a smaller model, checkpoint.side_fraction or offload.fraction";

std::string ceiling(const HostBudget& budget) {
  if (budget.limited) return "launch.host_memory_limit_gib allows " + bytes(budget.available);
  if (!budget.limit_file.empty())
    return fmt::format("the control group of this run has only {} left ({})", bytes(budget.available),
                       budget.limit_file);
  return fmt::format("this machine has only {} free{}", bytes(budget.available), free_on_nodes(budget));
}

std::string way_out(const HostBudget& budget) {
  if (budget.limited) return "raise that limit";
  return budget.limit_file.empty() ? "free memory on this machine" : "ask for a job with more memory";
}

bool exceeded(const HostBudget::Node& node) { return node.needed > node.available; }

}  // namespace

std::uint64_t HostBudget::needed_per_cell() const {
  std::uint64_t sum = 0;
  for (const Row& row : rows) sum += row.bytes_per_cell;
  return sum;
}

std::string summary(const HostBudget& budget) {
  std::string there = budget.known || budget.limited ? bytes(budget.available) : "not known how much";
  return fmt::format("host memory: {} needed by {} {}, {} {}", bytes(budget.needed()), budget.cells,
                     budget.cells == 1 ? "cell" : "cells", there, budget.limited ? "allowed" : "available");
}

void place_on_nodes(HostBudget& budget, const std::vector<std::vector<int>>& nodes_of_cells,
                    const std::vector<os::NodeMemory>& nodes) {
  budget.nodes.clear();
  for (const auto& node : nodes)
    if (node.has_cores) budget.nodes.push_back({.node = node.node, .available = node.available});
  if (budget.nodes.size() < 2) budget.nodes.clear();
  for (auto& node : budget.nodes) {
    for (const auto& cell : nodes_of_cells) {
      if (std::find(cell.begin(), cell.end(), node.node) == cell.end()) continue;
      ++node.cells;
      node.needed += budget.needed_per_cell() / cell.size();
    }
  }
}

bool tight(const HostBudget& budget) {
  auto near = [](std::uint64_t needed, std::uint64_t available) {
    return static_cast<double>(needed) >= 0.8 * static_cast<double>(available);
  };
  bool node = std::any_of(budget.nodes.begin(), budget.nodes.end(),
                          [&](const auto& one) { return one.cells > 0 && near(one.needed, one.available); });
  return node || near(budget.needed(), budget.available);
}

std::vector<std::string> table_lines(const HostBudget& budget) {
  std::size_t width = std::string("host memory").size();
  for (const auto& row : budget.rows) width = std::max(width, row.what.size());
  auto cells = static_cast<std::uint64_t>(budget.cells);
  auto line = [width](const std::string& what, const std::string& one, const std::string& all) {
    return fmt::format("{:<{}}  {:>10}  {:>10}", what, width, one, all);
  };
  std::vector<std::string> lines = {
      line("host memory", "per cell", cells == 1 ? "1 cell" : fmt::format("{} cells", cells))};
  for (const auto& row : budget.rows)
    lines.push_back(line(row.what, bytes(row.bytes_per_cell), bytes(row.bytes_per_cell * cells)));
  lines.push_back(line("needed", bytes(budget.needed_per_cell()), bytes(budget.needed())));
  if (budget.known || budget.limited)
    lines.push_back(line(budget.limited ? "limit" : "available", "", bytes(budget.available)));
  for (const auto& node : budget.nodes) {
    if (node.cells == 0) continue;
    lines.push_back(line(fmt::format("NUMA node {}", node.node), "needed", bytes(node.needed)));
    lines.push_back(line("", "available", bytes(node.available)));
  }
  return lines;
}

std::string table(const HostBudget& budget) { return fmt::format("{}", fmt::join(table_lines(budget), "\n")); }

std::string why_no_swap_fits(const HostBudget& budget, const Holders& holders) {
  if ((budget.known || budget.limited) && budget.needed() > budget.available)
    return fmt::format(
        "{} of host memory are needed beside the run for {}, but {}: {}, or choose an optimizer with {}.{}",
        bytes(budget.needed()), cells_with_parts(budget, budget.cells), ceiling(budget), way_out(budget), "fewer slots",
        budget.limited ? "" : held_by(holders));
  auto node = std::find_if(budget.nodes.begin(), budget.nodes.end(), exceeded);
  if (node == budget.nodes.end()) return "";
  return fmt::format(
      "{} of host memory are needed on NUMA node {} beside the run for {}, but it has only {} free: free memory on "
      "that "
      "node.{}",
      bytes(node->needed), node->node, cells_with_parts(budget, node->cells), bytes(node->available), held_by(holders));
}

void require_fit(const HostBudget& budget, const Holders& holders) {
  if ((budget.known || budget.limited) && budget.needed() > budget.available)
    fail("{} of host memory are needed for {}, but {}: {}, or {}.{}", bytes(budget.needed()),
         cells_with_parts(budget, budget.cells), ceiling(budget), smaller, way_out(budget),
         budget.limited ? "" : held_by(holders));
  auto node = std::find_if(budget.nodes.begin(), budget.nodes.end(), exceeded);
  if (node == budget.nodes.end()) return;
  fail(
      "{} of host memory are needed on NUMA node {} for {}, but it has only {} free{}: {}, free memory on that node, "
      "or "
      "set topology.bind_memory = false, which lets them lie on any.{}",
      bytes(node->needed), node->node, cells_with_parts(budget, node->cells), bytes(node->available),
      free_on_nodes(budget), smaller, held_by(holders));
}

}  // namespace ganymede::launcher
