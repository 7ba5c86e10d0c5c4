#include "launcher/supervisor/segment_memory.h"

#include <atomic>
#include <chrono>
#include <exception>
#include <future>

#include "common/base/error.h"
#include "common/os/machine.h"
#include "common/os/numa.h"

namespace ganymede::launcher {
namespace {

/// Shared by the threads of all cells.
struct Placing {
  std::atomic<std::uint64_t> done = 0;  // bytes
  std::atomic<bool> cancelled = false;

  void touched(std::size_t bytes) {
    if (cancelled) fail("The placing of shared memory was cancelled.");
    done += bytes;
  }
};

void place_cell(const NewCell& cell, const std::vector<int>& cores, const std::vector<int>& nodes, Placing& placing) {
  for (const auto& segment : cell.segments) {
    auto bytes = static_cast<std::size_t>(segment.layout().size);
    os::place_memory(segment.base(), bytes, nodes, cores, [&](std::size_t more) { placing.touched(more); });
    if (!nodes.empty()) os::verify_placement(segment.base(), bytes, nodes);
  }
}

std::uint64_t bytes_of(const std::vector<NewCell>& cells) {
  std::uint64_t bytes = 0;
  for (const auto& cell : cells)
    for (const auto& segment : cell.segments) bytes += segment.layout().size;
  return bytes;
}

}  // namespace

std::vector<std::vector<int>> nodes_of_cells(const config::Config& config, int cells, const os::Machine& machine) {
  std::vector<std::vector<int>> nodes(static_cast<std::size_t>(cells));
  if (!config.topology.bind_memory || os::memory_nodes() < 2) return nodes;
  for (int i = 0; i < cells; ++i)
    nodes[static_cast<std::size_t>(i)] = os::nodes_of_cores(os::cores_of(i, cells, machine));
  return nodes;
}

void place_segments(const config::Config& config, const std::vector<NewCell>& cells, const PlacingProgress& progress) {
  const auto machine = os::inspect_machine();
  const auto nodes = nodes_of_cells(config, static_cast<int>(cells.size()), machine);
  const std::uint64_t all = bytes_of(cells);
  Placing placing;
  std::vector<std::future<void>> work;
  for (const auto& cell : cells) {
    auto cores = os::cores_of(cell.local_rank, static_cast<int>(cells.size()), machine);
    const auto& own = nodes[static_cast<std::size_t>(cell.local_rank)];
    work.push_back(
        std::async(std::launch::async, [&placing, &cell, cores, &own] { place_cell(cell, cores, own, placing); }));
  }
  std::exception_ptr failure;
  for (auto& cell : work) {
    try {
      while (cell.wait_for(std::chrono::milliseconds(500)) != std::future_status::ready)
        if (!failure) progress(placing.done, all);
      cell.get();
    } catch (...) {
      placing.cancelled = true;
      if (!failure) failure = std::current_exception();
      if (cell.valid()) cell.wait();
    }
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace ganymede::launcher
