#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/collectives/collectives.h"
#include "common/collectives/shm/bells.h"
#include "common/collectives/shm/liveness.h"
#include "common/collectives/shm/port.h"

namespace ganymede::collectives {

/// The channels of the members of a node for one communicator: this rank's own, and those of its peers to be read.
/// Peers are numbered by their place in the node. Used by one thread at a time, but for `leave`.
class Channel {
 public:
  /// Takes a channel, tells the peers where it is through the store, and finds theirs. `group` has the ranks of this
  /// node alone. Throws CollectiveError naming the group when they do not come within its timeout.
  Channel(Port& port, const Group& group, Store& store);
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  const std::string& name() const { return name_; }
  int size() const { return static_cast<int>(peers_.size()); }
  int place() const { return place_; }
  int rank_of(int peer) const { return peers_[peer].rank; }
  Port& port() { return port_; }
  const OwnChannel& own() const { return own_; }

  /// Of an operation, counted from 1.
  std::uint64_t sequence() const { return sequence_; }
  void next_operation() { ++sequence_; }

  // Sending. `filled` and `taken` count pieces since the communicator was formed.
  MessageSlot& message_to(int peer) { return own_.lines[peer].message; }
  std::uint64_t filled_for(int peer) const { return sent_[peer]; }
  /// One more piece for the peer may be read.
  void count_filled(int peer);
  std::uint64_t taken_by(int peer) const { return believed(peers_[peer], peers_[peer].line->taken); }

  // Receiving.
  bool has_piece(int peer) const { return believed(peers_[peer], peers_[peer].line->filled) > received_[peer]; }
  const MessageSlot& message_from(int peer) const { return peers_[peer].line->message; }
  /// One more piece of the peer was read. Throws CollectiveError when the peer has left, so that what was read may have
  /// been overwritten.
  void count_taken(int peer);

  /// The peer has ended its communicator, or its process is gone. What it had counted before stays true.
  bool gone(int peer) const;
  /// Looks whether processes have ended; true when one more has.
  bool look_for_the_dead() { return liveness_.look(); }

  void ring() const { own_.ring(); }
  std::vector<Bell> bells() const;  // of all peers and the own one, with what they show now
  /// Ends it for the peers, and wakes this rank's own sleeper. Thread-safe.
  void leave() const { own_.leave(); }

 private:
  struct Peer {
    int rank = 0;
    std::uint64_t generation = 0;
    const ChannelHead* head = nullptr;
    const PeerLine* line = nullptr;  // the one for this member
  };
  static std::uint64_t believed(const Peer& peer, const SharedWord& word) {
    std::uint64_t value = word.load(std::memory_order_acquire);
    return tag_generation(value) == peer.generation ? tag_count(value) : 0;
  }
  Peer find(int rank, Store& store, Deadline deadline, int peer);
  std::string key(int rank) const;

  Port& port_;
  std::string name_;
  int place_ = 0;
  OwnChannel own_;
  std::vector<Peer> peers_;  // with this member, whose entry points to its own channel
  std::vector<std::uint64_t> sent_, received_;
  std::uint64_t sequence_ = 0;
  Liveness liveness_;
};

}  // namespace ganymede::collectives
