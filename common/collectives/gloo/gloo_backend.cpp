#include "common/collectives/gloo/gloo_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/error.h"
#include "common/collectives/gloo/process_group_gloo.h"
#include "common/collectives/gloo/store_bridge.h"
#include "common/collectives/pairwise.h"

namespace ganymede::collectives {
namespace {

using WorkPtr = c10::intrusive_ptr<c10d::Work>;

/// The first line of an exception of libtorch (the rest is a stack of its own).
std::string first_line(const std::exception& error) {
  std::string text = error.what();
  return text.substr(0, text.find('\n'));
}

at::Tensor view(ConstBytes bytes) {
  return at::from_blob(const_cast<std::byte*>(bytes.data()), {static_cast<std::int64_t>(bytes.size())}, at::kByte);
}

/// Which messages are under way in a communicator, so that `abort` can end their waits from another thread.
class Works {
 public:
  void add(const std::vector<WorkPtr>& works) {
    std::lock_guard lock(mutex_);
    if (aborted_) throw CollectiveError("the communicator was aborted");
    works_.insert(works_.end(), works.begin(), works.end());
  }
  void remove(const std::vector<WorkPtr>& works) {
    std::lock_guard lock(mutex_);
    std::erase_if(works_, [&](const WorkPtr& work) {
      return std::any_of(works.begin(), works.end(), [&](const WorkPtr& done) { return done.get() == work.get(); });
    });
  }
  void abort() {
    std::lock_guard lock(mutex_);
    aborted_ = true;
    for (const WorkPtr& work : works_) work->abort();
  }
  bool aborted() const {
    std::lock_guard lock(mutex_);
    return aborted_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<WorkPtr> works_;
  bool aborted_ = false;
};

class GlooPending : public Pending {
 public:
  GlooPending(std::string group, std::shared_ptr<Works> registry, std::vector<WorkPtr> works)
      : group_(std::move(group)), registry_(std::move(registry)), works_(std::move(works)) {}
  ~GlooPending() override { registry_->remove(works_); }

  void wait(Deadline deadline) override {
    for (WorkPtr& work : works_) wait_one(*work, deadline);
    registry_->remove(works_);
    works_.clear();
  }

 private:
  void wait_one(c10d::Work& work, Deadline deadline) {
    if (registry_->aborted()) throw CollectiveError(fmt::format("group {}: aborted", group_));
    // Zero means "no limit" to libtorch.
    auto left =
        std::max(std::chrono::duration_cast<std::chrono::milliseconds>(deadline.left()), std::chrono::milliseconds(1));
    bool complete = false;
    try {
      complete = work.wait(left);
    } catch (const std::exception& error) {
      throw CollectiveError(fmt::format("group {}: {}", group_, first_line(error)));
    }
    if (!complete || registry_->aborted()) throw CollectiveError(fmt::format("group {}: aborted", group_));
  }

  std::string group_;
  std::shared_ptr<Works> registry_;
  std::vector<WorkPtr> works_;
};

class GlooCommunicator : public PairwiseCommunicator {
 public:
  GlooCommunicator(const Group& group, c10::intrusive_ptr<c10d::ProcessGroupGloo> process_group)
      : PairwiseCommunicator(group), process_group_(std::move(process_group)), works_(std::make_shared<Works>()) {}

  void abort() override { works_->abort(); }

 protected:
  PendingPtr start(const std::vector<Send>& sends, const std::vector<Receive>& receives) override {
    int tag = static_cast<int>(next_tag_++ & 0x7fffffff);
    std::vector<WorkPtr> works;
    try {
      for (const Receive& receive : receives) {
        std::vector<at::Tensor> tensor{view(receive.bytes)};
        works.push_back(process_group_->recv(tensor, receive.member, tag));
      }
      for (const Send& send : sends) {
        std::vector<at::Tensor> tensor{view(send.bytes)};
        works.push_back(process_group_->send(tensor, send.member, tag));
      }
    } catch (const std::exception& error) {
      throw CollectiveError(fmt::format("group {}: {}", group().name, first_line(error)));
    }
    works_->add(works);
    return std::make_unique<GlooPending>(group().name, works_, std::move(works));
  }

 private:
  c10::intrusive_ptr<c10d::ProcessGroupGloo> process_group_;
  std::shared_ptr<Works> works_;
  std::uint32_t next_tag_ = 0;
};

}  // namespace

namespace {

/// A matter of this machine alone, which no other generation mends.
std::shared_ptr<::gloo::transport::Device> open_device(const std::string& interface) {
  try {
    return c10d::ProcessGroupGloo::createDeviceForInterface(interface);
  } catch (const std::exception& error) {
    fail_usage("Network interface '{}' (topology.interface) cannot be used: {}", interface, first_line(error));
  }
}

}  // namespace

std::unique_ptr<PairwiseCommunicator> make_gloo(const Group& group, std::shared_ptr<Store> store,
                                                const std::string& interface) {
  try {
    // Waits of messages have deadlines of their own; this is for connecting, where gloo waits five times as long.
    auto timeout = std::chrono::milliseconds(static_cast<std::int64_t>(group.timeout_seconds * 1e3 / 5));
    auto options = c10d::ProcessGroupGloo::Options::create(timeout);
    options->devices.push_back(open_device(interface));
    options->threads = 1;
    auto bridge = c10::make_intrusive<StoreBridge>(std::move(store), "gloo/" + group.name + "/", group.timeout_seconds);
    auto place = std::find(group.ranks.begin(), group.ranks.end(), group.rank) - group.ranks.begin();
    auto process_group = c10::make_intrusive<c10d::ProcessGroupGloo>(bridge, static_cast<int>(place),
                                                                     static_cast<int>(group.ranks.size()), options);
    return std::make_unique<GlooCommunicator>(group, std::move(process_group));
  } catch (const CollectiveError&) {
    throw;
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw CollectiveError(
        fmt::format("group {}: its members did not come together: {}", group.name, first_line(error)));
  }
}

}  // namespace ganymede::collectives
