#pragma once

#include <memory>
#include <vector>

#include "common/collectives/shm/port.h"
#include "common/os/fd.h"

namespace ganymede::collectives {

/// The published memory of all ranks of a test: two memfds a rank, as the keeper would hold them. They survive a fork,
/// so the ranks may be threads or processes.
class PublishedMemory : public std::enable_shared_from_this<PublishedMemory> {
 public:
  static constexpr std::size_t bytes = 64u << 20;          // of each region
  static constexpr std::size_t channels_bytes = 1u << 20;  // at the start of the second: 8 of 128 KiB
  explicit PublishedMemory(int ranks);

  /// A port of that rank, on a mapping of its own.
  std::unique_ptr<Port> port(int rank);
  /// Where that rank may put its data: the first region, and the rest of the second.
  std::span<std::byte> data(int rank, int region) const;

 private:
  class Peers;
  struct Mapping {
    std::byte* base = nullptr;
    explicit Mapping(int fd, bool writable);
    Mapping(Mapping&& other) noexcept : base(std::exchange(other.base, nullptr)) {}
    ~Mapping();
  };
  std::vector<os::Fd> memory_;     // [rank][region]
  std::vector<Mapping> writable_;  // the owner's
};

}  // namespace ganymede::collectives
