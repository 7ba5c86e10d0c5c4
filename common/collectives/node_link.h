#pragma once

#include <span>
#include <vector>

#include "common/collectives/collectives.h"

/// How the members of one node reach each other: the part of a communicator that differs between backends.
namespace ganymede::collectives {

/// A run of bytes, relative to a base that each side has for itself.
struct Run {
  std::size_t offset = 0, bytes = 0;
};
using Runs = std::vector<Run>;  // ascending, none empty
std::size_t total_bytes(const Runs& runs);

/// A message to a member of the node: `runs` of the memory at `base`, one after the other.
struct Outgoing {
  int peer = 0;
  const std::byte* base = nullptr;
  Runs runs;
};

/// A message from a member, with the runs as the sender names them; they end up one after the other in `to`.
struct Incoming {
  int peer = 0;
  Runs runs;
  std::byte* to = nullptr;
};

/// One contribution to a sum: a message from a member, or memory of this process (`peer` -1, then `base` is given).
struct Term {
  int peer = -1;
  const std::byte* base = nullptr;
  Runs runs;
};

/// Messages between the members of one node, an operation at a time, the same ones in the same order on all members.
/// Empty messages are left out on both sides. Both operations return when this member has everything and the peers have
/// taken everything from its memory; they throw CollectiveError at the deadline, after `interrupt`, and when a peer
/// that is still needed is gone. Calls from one thread at a time; `interrupt` from any.
class NodeLink {
 public:
  virtual ~NodeLink() = default;
  /// False when `sum` first receives all terms into memory of its own, so that the caller should cut what is long.
  virtual bool reads_in_place() const = 0;
  virtual void copy(const std::vector<Outgoing>& sends, const std::vector<Incoming>& receives, Deadline deadline) = 0;
  /// `sum` = the terms, in their order; each has the size of `sum` in elements.
  virtual void sum(const std::vector<Outgoing>& sends, const std::vector<Term>& terms, Element element,
                   std::span<float> sum, Deadline deadline) = 0;
  virtual void interrupt() = 0;
};

}  // namespace ganymede::collectives
