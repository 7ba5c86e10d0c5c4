#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "common/collectives/shm/channel_area.h"
#include "common/collectives/shm/regions.h"

namespace ganymede::collectives {

/// A rank's own channel while a communicator uses it.
struct OwnChannel {
  int index = 0;
  int members = 0;
  std::uint64_t generation = 0;
  ChannelHead* head = nullptr;
  PeerLine* lines = nullptr;  // one a member
  std::span<std::byte> staging;
  std::size_t head_offset = 0, staging_offset = 0;  // in the region that holds the channels

  /// Begins the generation: from here on the counts of the one before are lost.
  void open() const;
  /// Tells the peers that something has changed. Thread-safe.
  void ring() const;
  /// Nothing of this generation may be believed any more. Thread-safe.
  void leave() const;
};

/// This rank's side of the backend `shm`: what it publishes, and the channels that its communicators take turns on. One
/// for a rank; it must outlive its communicators. Thread-safe.
class Port {
 public:
  struct Spec {
    int rank = 0;  // in the world
    std::vector<Region> regions;
    std::size_t channels_region = 0;       // index of the region that holds the channels,
    std::span<std::byte> channels_memory;  // and where in it: on 64 bytes, zero at first
    int channels = 8;                      // communicators at a time
    std::shared_ptr<PeerMemory> peers;
  };
  /// Ends whatever a former process of this rank had under way in the channels. Throws Error when they have no room.
  explicit Port(Spec spec);

  int rank() const { return spec_.rank; }
  std::size_t channels_region() const { return spec_.channels_region; }

  struct Place {
    std::size_t region = 0, offset = 0;
  };
  /// Where memory is published; nothing when it is not, or not in one piece.
  std::optional<Place> locate(const std::byte* memory, std::size_t bytes) const;

  /// A peer's region. Throws Error.
  std::span<const std::byte> peer(int rank, std::size_t region) { return spec_.peers->map(rank, region); }

  /// A free channel for a new communicator of `members`, to be opened when all of them have come. Throws Error when
  /// there is none or it is too small.
  OwnChannel take(int members);
  /// Ends the generation of a channel and frees it.
  void give_back(const OwnChannel& channel);

 private:
  std::span<std::byte> memory_of(int index) const;

  Spec spec_;
  std::mutex mutex_;
  std::vector<bool> taken_;
};

}  // namespace ganymede::collectives
