#pragma once

#include <atomic>
#include <map>
#include <mutex>

#include "common/collectives/collectives.h"

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

/// Every collective built from one primitive, a set of messages between pairs. Sums are made at the receiver in rank
/// order, so their bits depend on the group's size alone. A backend supplies `start`.
class PairwiseCommunicator : public Communicator {
 public:
  explicit PairwiseCommunicator(Group group);

  int rank() const override { return place_; }
  int size() const override { return static_cast<int>(group_.ranks.size()); }
  PendingPtr all_gather(ConstBytes mine, Bytes all, std::span<const std::size_t> offsets) override;
  PendingPtr all_to_all(ConstBytes send, std::span<const std::size_t> send_offsets, Bytes receive,
                        std::span<const std::size_t> receive_offsets) override;
  PendingPtr all_reduce(std::span<std::int64_t> values) override;
  PendingPtr reduce_scatter(std::span<const float> values, std::span<const std::int64_t> cut,
                            std::span<float> sum) override;
  void barrier(Deadline deadline) override;
  std::vector<Traffic> traffic() const override;

 protected:
  /// Starts all messages of one collective. Members other than this one only, none of them empty; the messages
  /// between one pair arrive in the order of the calls. Throws CollectiveError.
  virtual PendingPtr start(const std::vector<Send>& sends, const std::vector<Receive>& receives) = 0;

  const Group& group() const { return group_; }

 private:
  PendingPtr exchange(const char* operation, const std::vector<Send>& sends, const std::vector<Receive>& receives);

  Group group_;
  int place_ = 0;
  mutable std::mutex traffic_mutex_;
  std::map<std::string, std::uint64_t> bytes_sent_;
};

}  // namespace ganymede::collectives
