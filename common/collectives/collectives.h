#pragma once

#include "common/base/deadline.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

/// Collective communication between the workers of a world: the interface; backends live in folders beside it.
namespace ganymede::collectives {

using Bytes = std::span<std::byte>;
using ConstBytes = std::span<const std::byte>;

/// Thrown by a wait when a peer is gone, the deadline has passed, or `abort` was called. The communicator cannot be
/// used any more.
class CollectiveError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A collective under way. Its buffers must live and stay untouched until `wait` returned or the communicator was
/// destroyed.
class Pending {
 public:
  virtual ~Pending() = default;
  /// Returns when it is complete. Throws CollectiveError.
  virtual void wait(Deadline deadline) = 0;
};
using PendingPtr = std::unique_ptr<Pending>;

/// What a collective carries; only the byte counters look at it.
struct Cargo {
  std::string bucket;  // kind: "experts", "dense", … or nothing
  std::string wire;    // format: "fp32", "bf16", "fp8", … or nothing
};

/// Bytes of messages that left this rank, by operation and cargo. What peers read in place counts as sent by its owner;
/// what a rank keeps for itself does not count. `traffic_forms.h` has the same as closed forms.
struct Traffic {
  std::string operation;
  Cargo cargo;
  std::uint64_t bytes_sent = 0;     // in total
  std::uint64_t between_nodes = 0;  // of these, to other nodes
  std::uint64_t inside_node() const { return bytes_sent - between_nodes; }
};

/// Type of the contributions to a sum; the sum itself is fp32.
enum class Element : std::uint8_t { fp32, bf16 };

/// One communicator over an ordered group of ranks. Collectives are matched by the order of the calls, which must
/// be the same on all members. Calls from one thread at a time; `abort` from any thread.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;  // place in the group
  virtual int size() const = 0;

  /// Every member's part, placed at `offsets[i]` (bytes, size() + 1 boundaries) of `all`. `mine` is this member's
  /// part, `offsets[rank()+1] - offsets[rank()]` bytes; it may already lie in place.
  virtual PendingPtr all_gather(ConstBytes mine, Bytes all, std::span<const std::size_t> offsets,
                                const Cargo& cargo = {}) = 0;

  /// Sends bytes [send_offsets[i], send_offsets[i+1]) of `send` to member i and receives from i into
  /// [receive_offsets[i], receive_offsets[i+1]) of `receive`; even and uneven splits, empty parts allowed.
  virtual PendingPtr all_to_all(ConstBytes send, std::span<const std::size_t> send_offsets, Bytes receive,
                                std::span<const std::size_t> receive_offsets, const Cargo& cargo = {}) = 0;

  /// Sums of integers, the same on all members, in place.
  virtual PendingPtr all_reduce(std::span<std::int64_t> values) = 0;

  /// Member i receives in `sum` the fp32 sum of everyone's elements [cut[i], cut[i+1]) of `values`: first within each
  /// node in rank order, then over the nodes in node order. `sum` may be the own part of `values`.
  virtual PendingPtr reduce_scatter(std::span<const float> values, std::span<const std::int64_t> cut,
                                    std::span<float> sum, const Cargo& cargo = {}) = 0;

  /// The same with contributions of type `element`, summed in fp32 in rank order whatever the nodes: an all_to_all with
  /// the sum at the receiver. In fp32 `sum` may be the own part of `values`.
  virtual PendingPtr all_to_all_sum(ConstBytes values, Element element, std::span<const std::int64_t> cut,
                                    std::span<float> sum, const Cargo& cargo = {}) = 0;

  virtual void barrier(Deadline deadline) = 0;

  /// Ends all waits with CollectiveError, now and in future. Thread-safe.
  virtual void abort() = 0;

  virtual std::vector<Traffic> traffic() const = 0;
};

/// Key-value rendezvous of one generation, served by the coordinator.
class Store {
 public:
  virtual ~Store() = default;
  virtual void set(const std::string& key, ConstBytes value) = 0;
  /// Waits until the key is there. Throws CollectiveError at the deadline or when the generation is over.
  virtual std::vector<std::byte> get(const std::string& key, Deadline deadline) = 0;
  virtual std::int64_t add(const std::string& key, std::int64_t amount) = 0;
};

/// What a backend needs to form one communicator.
struct Group {
  std::string name;              // unique in the generation: "world", "expert.2", …
  std::vector<int> ranks;        // world ranks, ascending
  int rank = 0;                  // this process's world rank
  double timeout_seconds = 120;  // for the members to come together
  std::vector<int> nodes = {};   // node of each of `ranks`, never descending; empty: all on one node
};

}  // namespace ganymede::collectives
