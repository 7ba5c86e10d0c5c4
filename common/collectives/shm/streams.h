#pragma once

#include <vector>

#include "common/collectives/node_link.h"
#include "common/collectives/shm/channel.h"

/// The two ends of a message between two ranks of a node, during one operation.
namespace ganymede::collectives {

/// The bytes of `runs` on their way to one reader, or to several that want the same. They are read in place when they
/// are published, else they pass through two slots of the staging area, piece by piece.
class OutgoingStream {
 public:
  OutgoingStream(const std::byte* base, const Runs& runs) : base_(base), runs_(runs), bytes_(total_bytes(runs)) {}
  bool carries(const Outgoing& message) const;
  void add_reader(int peer) { readers_.push_back(peer); }

  /// Announces it. `staging`: this stream's part of the staging area.
  void start(Channel& channel, std::span<std::byte> staging);
  /// Fills the next slot when it is free. True when something was done.
  bool advance(Channel& channel);
  bool complete(const Channel& channel) const;
  /// Readers that have not taken everything.
  void append_waiting(const Channel& channel, std::vector<int>& peers) const;

 private:
  void copy_out(std::size_t begin, std::span<std::byte> to) const;

  const std::byte* base_;
  Runs runs_;
  std::size_t bytes_;
  std::vector<int> readers_;
  std::vector<std::uint64_t> taken_at_start_;  // by reader
  std::span<std::byte> slots_;
  std::size_t slot_bytes_ = 0;  // 0: in place
  std::uint64_t pieces_ = 0, filled_ = 0;
};

/// A message from a peer, read front to back.
class IncomingStream {
 public:
  IncomingStream(int peer, const Runs& runs) : peer_(peer), runs_(runs), bytes_(total_bytes(runs)) {}
  int peer() const { return peer_; }
  bool complete() const { return cursor_ == bytes_; }
  std::size_t cursor() const { return cursor_; }
  std::size_t bytes() const { return bytes_; }

  /// What can be read now without a gap, from the cursor on; empty while the peer has nothing. Throws CollectiveError
  /// when the peer sends something else than is expected.
  ConstBytes view(Channel& channel);
  /// `count` bytes of the view were read.
  void consume(Channel& channel, std::size_t count);

 private:
  void open(Channel& channel);

  int peer_;
  Runs runs_;
  std::size_t bytes_;
  std::size_t cursor_ = 0;
  bool open_ = false;
  const std::byte* memory_ = nullptr;  // of the first run, or of the slots
  std::size_t slot_bytes_ = 0;
  std::size_t run_ = 0, run_begin_ = 0;  // the run that holds the cursor, and where it begins in the message
};

}  // namespace ganymede::collectives
