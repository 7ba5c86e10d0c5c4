#pragma once

#include "common/collectives/collectives.h"
#include "common/collectives/topology.h"
#include "common/collectives/traffic_counter.h"

namespace ganymede::collectives {

/// One message of a pairwise exchange: to or from a member of the group.
struct Send {
  int member = 0;
  ConstBytes bytes;
};
struct Receive {
  int member = 0;
  Bytes bytes;
};

/// Every collective built from one primitive, a set of messages between pairs. Sums are made at the receiver, so their
/// bits depend on the group and its nodes alone. A backend supplies `start`.
class PairwiseCommunicator : public Communicator {
 public:
  explicit PairwiseCommunicator(Group group);

  int rank() const override { return map_.member(); }
  int size() const override { return map_.size(); }
  PendingPtr all_gather(ConstBytes mine, Bytes all, std::span<const std::size_t> offsets,
                        const Cargo& cargo = {}) override;
  PendingPtr all_to_all(ConstBytes send, std::span<const std::size_t> send_offsets, Bytes receive,
                        std::span<const std::size_t> receive_offsets, const Cargo& cargo = {}) override;
  PendingPtr all_reduce(std::span<std::int64_t> values) override;
  PendingPtr reduce_scatter(std::span<const float> values, std::span<const std::int64_t> cut, std::span<float> sum,
                            const Cargo& cargo = {}) override;
  PendingPtr all_to_all_sum(ConstBytes values, Element element, std::span<const std::int64_t> cut, std::span<float> sum,
                            const Cargo& cargo = {}) override;
  void barrier(Deadline deadline) override;
  std::vector<Traffic> traffic() const override { return counter_.all(); }

  /// The primitive itself, not counted: for who composes collectives of its own. Calls as for `start`.
  PendingPtr messages(const std::vector<Send>& sends, const std::vector<Receive>& receives) {
    return start(sends, receives);
  }

 protected:
  /// Starts all messages of one collective. Members other than this one only, none of them empty; the messages
  /// between one pair arrive in the order of the calls. Throws CollectiveError.
  virtual PendingPtr start(const std::vector<Send>& sends, const std::vector<Receive>& receives) = 0;

  const Group& group() const { return group_; }

 private:
  using Sum = std::function<void(std::span<const std::byte* const> terms)>;
  PendingPtr exchange(const char* operation, const Cargo& cargo, const std::vector<Send>& sends,
                      const std::vector<Receive>& receives);
  PendingPtr receive_and_sum(const char* operation, const Cargo& cargo, ConstBytes values, std::size_t width,
                             std::span<const std::int64_t> cut, Sum sum);

  Group group_;
  NodeMap map_;
  TrafficCounter counter_;
};

}  // namespace ganymede::collectives
