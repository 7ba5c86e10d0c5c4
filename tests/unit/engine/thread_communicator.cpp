#include "tests/unit/engine/thread_communicator.h"

#include <algorithm>

namespace ganymede::worker {

using collectives::CollectiveError;

void ThreadPost::put(const Key& key, collectives::ConstBytes bytes) {
  if (observed) observed(key);
  std::lock_guard lock(mutex_);
  boxes_[key].emplace_back(bytes.begin(), bytes.end());
  changed_.notify_all();
}

void ThreadPost::take(const Key& key, collectives::Bytes into, Deadline deadline) {
  std::unique_lock lock(mutex_);
  auto& box = boxes_[key];
  changed_.wait_for(lock, deadline.left(), [&] { return closed_ || !box.empty(); });
  if (closed_ || box.empty()) throw CollectiveError("no message came");
  if (box.front().size() != into.size()) throw CollectiveError("a message has another size than expected");
  std::copy(box.front().begin(), box.front().end(), into.begin());
  box.pop_front();
}

void ThreadPost::close() {
  std::lock_guard lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

namespace {

class ThreadCommunicator : public collectives::PairwiseCommunicator {
 public:
  ThreadCommunicator(const collectives::Group& group, std::shared_ptr<ThreadPost> post)
      : PairwiseCommunicator(group), post_(std::move(post)) {}
  void abort() override { post_->close(); }

 protected:
  class Arrivals : public collectives::Pending {
   public:
    Arrivals(ThreadCommunicator& owner, std::vector<collectives::Receive> receives)
        : owner_(owner), receives_(std::move(receives)) {}
    void wait(Deadline deadline) override {
      for (const collectives::Receive& receive : receives_) {
        owner_.post_->take({owner_.group().name, receive.member, owner_.rank()}, receive.bytes, deadline);
      }
    }

   private:
    ThreadCommunicator& owner_;
    std::vector<collectives::Receive> receives_;
  };

  collectives::PendingPtr start(const std::vector<collectives::Send>& sends,
                                const std::vector<collectives::Receive>& receives) override {
    for (const collectives::Send& send : sends) post_->put({group().name, rank(), send.member}, send.bytes);
    return std::make_unique<Arrivals>(*this, receives);
  }

 private:
  std::shared_ptr<ThreadPost> post_;
};

}  // namespace

std::unique_ptr<collectives::PairwiseCommunicator> make_thread_communicator(const collectives::Group& group,
                                                                            std::shared_ptr<ThreadPost> post) {
  return std::make_unique<ThreadCommunicator>(group, std::move(post));
}

}  // namespace ganymede::worker
