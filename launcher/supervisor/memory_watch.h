#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

namespace ganymede::launcher {

/// Says when the memory of this node runs short, before the kernel has to kill a process: once when less than the
/// margin is available, and again only after there was clearly more in between. Not thread-safe.
class MemoryWatch {
 public:
  /// The names of this run's processes, by process id; asked only for a warning.
  using OwnNames = std::function<std::map<int, std::string>()>;

  /// `root`: the folder that proc/ and sys/ lie in.
  explicit MemoryWatch(std::string root = "/") : root_(std::move(root)) {}

  /// To be called often; looks every ten seconds. `now`: seconds. A warning: what is available, the margin, the largest
  /// holders, what to do. Nothing where the kernel does not tell what is available.
  std::optional<std::string> look(double now, const OwnNames& own);
  /// Whether the kernel has killed a process of this machine for want of memory within the last seconds. To be called
  /// often, so that it knows when.
  bool killed_lately(double now);

 private:
  std::string root_;
  std::optional<double> looked_;  // seconds
  bool warned_ = false;
  std::optional<std::uint64_t> kills_;  // by the kernel, as looked at last
  std::optional<double> killed_;        // seconds, when their number grew
};

/// Bytes that should stay available of `total`: a twentieth, at least 256 MiB and at most 4 GiB, but never more than
/// half.
std::uint64_t memory_margin(std::uint64_t total);

}  // namespace ganymede::launcher
