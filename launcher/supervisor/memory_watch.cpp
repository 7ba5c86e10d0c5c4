#include "launcher/supervisor/memory_watch.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/base/text.h"
#include "common/os/memory_holders.h"
#include "common/os/memory_limit.h"

namespace ganymede::launcher {
namespace {

constexpr double look_every = 10;  // seconds
constexpr double lately = 3;       // seconds, from the kernel's decision to the end of a large process
constexpr std::size_t holders_told = 4;
constexpr std::uint64_t least_margin = std::uint64_t{256} << 20, most_margin = std::uint64_t{4} << 30;

std::string bytes(std::uint64_t count) { return human_bytes(static_cast<double>(count)); }

/// "worker of rank 0 (process 12) 3 GiB; /dev/shm/left 2 GiB".
std::string largest(const std::string& root, const std::map<int, std::string>& own) {
  std::string list;
  for (auto holder : os::largest_memory_holders(holders_told, root)) {
    if (auto name = own.find(holder.pid); name != own.end()) holder.name = name->second;
    list += (list.empty() ? "" : "; ") + os::describe(holder);
  }
  return list.empty() ? "nobody that can be seen" : list;
}

}  // namespace

std::uint64_t memory_margin(std::uint64_t total) {
  return std::min(std::clamp(total / 20, least_margin, most_margin), total / 2);
}

bool MemoryWatch::killed_lately(double now) {
  std::uint64_t kills = os::out_of_memory_kills(root_);
  if (kills_ && kills > *kills_) killed_ = now;
  kills_ = kills;
  return killed_ && now - *killed_ < lately;
}

std::optional<std::string> MemoryWatch::look(double now, const OwnNames& own) {
  if (looked_ && now - *looked_ < look_every) return std::nullopt;
  looked_ = now;
  os::Memory memory = os::memory_within_limits(root_);
  if (memory.total == 0) return std::nullopt;
  std::uint64_t margin = memory_margin(memory.total);
  if (memory.available >= margin + margin / 2) warned_ = false;
  if (memory.available >= margin || warned_) return std::nullopt;
  warned_ = true;
  std::string where =
      memory.limit_file.empty() ? "on this machine" : fmt::format("to the control group ({})", memory.limit_file);
  return fmt::format(
      "host memory runs short: only {} are left {}, less than the margin of {}; when none is left, the kernel kills "
      "processes. The largest holders: {}. End what is not needed, or stop the run (Ctrl-C writes a checkpoint) and go "
      "on with fewer parallel.ranks, checkpoint.side_fraction or offload.fraction",
      bytes(memory.available), where, bytes(margin), largest(root_, own()));
}

}  // namespace ganymede::launcher
