#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>

#include "common/collectives/pairwise.h"

namespace ganymede::worker {

/// Carries messages between ranks that are threads of one process.
class ThreadPost {
 public:
  using Key = std::tuple<std::string, int, int>;  // group, from, to (places)
  /// Hears of every message before it is sent, in the sender's thread.
  std::function<void(const Key&)> observed;
  void put(const Key& key, collectives::ConstBytes bytes);
  /// Waits for the next message and copies it; throws CollectiveError at the deadline or after `close`.
  void take(const Key& key, collectives::Bytes into, Deadline deadline);
  void close();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<Key, std::deque<std::vector<std::byte>>> boxes_;
  bool closed_ = false;
};

std::unique_ptr<collectives::PairwiseCommunicator> make_thread_communicator(const collectives::Group& group,
                                                                            std::shared_ptr<ThreadPost> post);

}  // namespace ganymede::worker
