#include "common/collectives/single.h"

#include <atomic>

#include "common/base/error.h"
#include "common/collectives/pairwise.h"

namespace ganymede::collectives {
namespace {

class Done : public Pending {
 public:
  explicit Done(const std::atomic<bool>& aborted) : aborted_(aborted) {}
  void wait(Deadline) override {
    if (aborted_) throw CollectiveError("the collective was aborted");
  }

 private:
  const std::atomic<bool>& aborted_;
};

/// Nobody to talk to: the pairwise base makes the local copies, and no message is left.
class Single : public PairwiseCommunicator {
 public:
  using PairwiseCommunicator::PairwiseCommunicator;
  void abort() override { aborted_ = true; }

 protected:
  PendingPtr start(const std::vector<Send>&, const std::vector<Receive>&) override {
    if (aborted_) throw CollectiveError("the communicator was aborted");
    return std::make_unique<Done>(aborted_);
  }

 private:
  std::atomic<bool> aborted_{false};
};

}  // namespace

std::unique_ptr<Communicator> make_single(const Group& group) {
  GANYMEDE_CHECK(group.ranks.size() == 1, "group {} of {} ranks is not a group of one", group.name, group.ranks.size());
  return std::make_unique<Single>(group);
}

}  // namespace ganymede::collectives
