#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

/// The memory that the ranks of a node let each other read.
namespace ganymede::collectives {

/// Memory that this rank publishes: a segment. All ranks publish the same ones in the same order; sizes may differ.
struct Region {
  std::string name;
  std::byte* base = nullptr;
  std::size_t bytes = 0;
};

/// Finds the regions of the other ranks of the node.
class PeerMemory {
 public:
  virtual ~PeerMemory() = default;
  /// The region with that index of a rank, mapped to be read; valid as long as this object. Throws Error or
  /// CollectiveError. Thread-safe.
  virtual std::span<const std::byte> map(int rank, std::size_t region) = 0;
};

}  // namespace ganymede::collectives
