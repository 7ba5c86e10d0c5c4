#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/collectives/collectives.h"
#include "common/placement/placement.h"

/// The communicators of one generation: each lane has its own, so that the orders of their calls cannot cross. All but
/// `control` belong to a state epoch, whose placement says which there are.
namespace ganymede::worker {

/// Name of the group of `control`.
constexpr const char* control_name = "control.0";

using MakeCommunicator = std::function<std::unique_ptr<collectives::Communicator>(const collectives::Group&)>;

struct TrafficLine {
  std::string operation;
  collectives::Cargo cargo;
  std::uint64_t inside = 0, between = 0;  // bytes to ranks of this node, and to ranks of other nodes
};
using TrafficLines = std::vector<TrafficLine>;

/// What was added since `before`; lines without a byte are left out.
TrafficLines since(const TrafficLines& now, const TrafficLines& before);

class Communicators {
 public:
  /// Forms `control` alone: what ranks need that have yet to agree on their epoch. Throws CollectiveError.
  Communicators(int rank, int world, double timeout_seconds, const MakeCommunicator& make);
  /// And the others of the first epoch. Throws CollectiveError.
  Communicators(const config::Config& config, const placement::Placement& placement, double timeout_seconds,
                const MakeCommunicator& make);

  /// Ends all but `control`. No rank may wait for one of them any more.
  void clear();
  /// Forms all groups that the placement of an epoch and the choices of its plan need, in the same order on every rank.
  /// There are none yet; none is formed twice in a generation. Not while another thread calls `abort`. Throws
  /// CollectiveError.
  void form(const config::Config& config, const placement::Placement& placement, std::uint64_t epoch,
            double timeout_seconds, const MakeCommunicator& make);

  collectives::Communicator& control() { return *control_; }
  /// For a bucket that is shared by several ranks.
  collectives::Communicator& gather(const placement::Bucket& bucket);
  collectives::Communicator& reduce(const placement::Bucket& bucket);
  /// For the rows of a bucket's matrices; some of them have to travel.
  collectives::Communicator& update(const placement::Bucket& bucket);
  /// Of those of this node that share dense buckets, in their order; there must be several, and dense.reshard be node.
  collectives::Communicator& gather_in_node() { return *node_gather_; }
  /// Of the replica group, by replica; there must be several, and for gathers each with its slice of the state.
  collectives::Communicator& replica_gather() { return *replica_gather_; }
  collectives::Communicator& replica_reduce() { return *replica_reduce_; }
  /// Of the expert group; nothing when this rank is alone in it.
  collectives::Communicator* exchange() { return exchange_.get(); }

  /// Ends all waits. Thread-safe.
  void abort();

  /// Bytes that left this rank so far, by operation ("gather", "reduce", "replica_reduce", "dispatch", "combine",
  /// "update_send", "update_return", "control"), kind of bucket and wire format; each line once.
  TrafficLines traffic() const;

 private:
  auto all() {
    return std::array{&control_,       &gather_,        &reduce_,   &node_gather_, &replica_gather_, &replica_reduce_,
                      &expert_gather_, &expert_reduce_, &exchange_, &update_,      &expert_update_};
  }
  std::size_t shard_group_ = 0;
  std::unique_ptr<collectives::Communicator> control_;                          // of the world
  std::unique_ptr<collectives::Communicator> gather_, reduce_;                  // of the shard group, if it is several
  std::unique_ptr<collectives::Communicator> node_gather_;                      // of the shard group's ranks of a node
  std::unique_ptr<collectives::Communicator> replica_gather_, replica_reduce_;  // of the replica group
  std::unique_ptr<collectives::Communicator> expert_gather_, expert_reduce_;    // of expert buckets, if not all of it
  std::unique_ptr<collectives::Communicator> exchange_;
  std::unique_ptr<collectives::Communicator> update_, expert_update_;  // of what shares buckets with matrices
};

}  // namespace ganymede::worker
