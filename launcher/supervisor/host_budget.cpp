#include "launcher/supervisor/host_budget.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "common/base/error.h"
#include "common/base/text.h"

namespace ganymede::launcher {
namespace {

std::string bytes(std::uint64_t count) { return human_bytes(static_cast<double>(count)); }

}  // namespace

std::uint64_t HostBudget::needed_per_cell() const {
  std::uint64_t sum = 0;
  for (const Row& row : rows) sum += row.bytes_per_cell;
  return sum;
}

std::string summary(const HostBudget& budget) {
  return fmt::format("host memory: {} needed by {} {}, {} {}", bytes(budget.needed()), budget.cells,
                     budget.cells == 1 ? "cell" : "cells", bytes(budget.available),
                     budget.limited ? "allowed" : "available");
}

bool tight(const HostBudget& budget) {
  return static_cast<double>(budget.needed()) >= 0.8 * static_cast<double>(budget.available);
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
  lines.push_back(line(budget.limited ? "limit" : "available", "", bytes(budget.available)));
  return lines;
}

std::string table(const HostBudget& budget) { return fmt::format("{}", fmt::join(table_lines(budget), "\n")); }

void require_fit(const HostBudget& budget) {
  if (budget.needed() <= budget.available) return;
  std::vector<HostBudget::Row> largest = budget.rows;
  std::sort(largest.begin(), largest.end(), [](const auto& a, const auto& b) {
    return a.bytes_per_cell != b.bytes_per_cell ? a.bytes_per_cell > b.bytes_per_cell : a.what < b.what;
  });
  std::string parts;
  for (std::size_t i = 0; i < std::min<std::size_t>(2, largest.size()); ++i)
    parts += fmt::format("{}{} {}", i == 0 ? "" : " and ", largest[i].what, bytes(largest[i].bytes_per_cell));
  fail(
      "{} of host memory are needed for {} {} ({} each, most of it {}), but {} {}: use fewer parallel.ranks, a "
      "smaller model, checkpoint.side_fraction or offload.fraction, or {}.",
      bytes(budget.needed()), budget.cells, budget.cells == 1 ? "cell" : "cells", bytes(budget.needed_per_cell()),
      parts, budget.limited ? "launch.host_memory_limit_gib allows" : "this machine has only",
      bytes(budget.available) + (budget.limited ? "" : " free"),
      budget.limited ? "raise that limit" : "free memory on this machine");
}

}  // namespace ganymede::launcher
