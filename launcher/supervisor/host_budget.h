#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ganymede::launcher {

/// What the cells of one node need of its memory, against what there is.
struct HostBudget {
  struct Row {
    std::string what;  // "master", "worker process", …
    std::uint64_t bytes_per_cell = 0;
  };
  int cells = 1;
  std::vector<Row> rows;
  std::uint64_t available = 0;  // bytes that this node can give
  bool limited = false;         // `available` is launch.host_memory_limit_gib, not what the machine has free

  std::uint64_t needed_per_cell() const;
  std::uint64_t needed() const { return needed_per_cell() * static_cast<std::uint64_t>(cells); }
};

/// "host memory: 546 MiB needed by 2 cells, 22.1 GiB available".
std::string summary(const HostBudget& budget);

/// Whether so much is needed that a person should see for what: four fifths of what is available, or more.
bool tight(const HostBudget& budget);

/// Aligned lines: a head, one a row, the sum, what is available.
std::vector<std::string> table_lines(const HostBudget& budget);
/// The same as one text. Ends without a newline.
std::string table(const HostBudget& budget);

/// Throws Error with the numbers, the two largest parts and what to change when it does not fit.
void require_fit(const HostBudget& budget);

}  // namespace ganymede::launcher
