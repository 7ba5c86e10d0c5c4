#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

/// What lies in a channel, the part of a rank's published memory that one communicator uses at a time. Its owner alone
/// writes it; the peers read.
///
///     channel := head line{members} staging
namespace ganymede::collectives {

using SharedWord = std::atomic<std::uint64_t>;

/// A count that belongs to one generation of a channel and is believed only with it.
constexpr std::uint64_t tagged(std::uint64_t generation, std::uint64_t count) { return generation << 40 | count; }
constexpr std::uint64_t tag_generation(std::uint64_t word) { return word >> 40; }
constexpr std::uint64_t tag_count(std::uint64_t word) { return word & ((std::uint64_t{1} << 40) - 1); }

struct alignas(64) ChannelHead {
  SharedWord bell;        // changes with every change of the channel; the futex that peers sleep on
  SharedWord generation;  // one more with every communicator that is formed here
  SharedWord left;        // the last generation whose communicator has ended: nothing of it may be believed
};

/// The message under way to one member. Written before `filled` counts its first piece, then left alone until the
/// member has taken all of it.
struct MessageSlot {
  std::uint64_t sequence = 0;    // of the operation in the communicator
  std::uint64_t bytes = 0;       // in total
  std::uint64_t region = 0;      // where it lies, in the owner's list
  std::uint64_t offset = 0;      // in the region: of the first run, or of the staging slots
  std::uint64_t slot_bytes = 0;  // 0: all of it lies in place and is one piece; else piece i is in staging slot i % 2
};

/// What the owner has for one member of the group and took from it.
struct alignas(64) PeerLine {
  SharedWord filled;  // tagged: pieces of messages to the member that may be read, since the communicator was formed
  SharedWord taken;   // tagged: pieces of messages from the member that were taken
  MessageSlot message;
};
static_assert(sizeof(ChannelHead) == 64 && sizeof(PeerLine) == 64);

}  // namespace ganymede::collectives
