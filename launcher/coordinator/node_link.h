#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "common/msg/client.h"
#include "launcher/coordinator/node_state.h"

namespace ganymede::coordinator {

/// A node's way to the coordinator: the newest state goes there, what the coordinator wishes comes back. Works in a
/// thread of its own and goes on trying while the coordinator is away.
class NodeLink {
 public:
  struct Ways {
    std::string endpoint, key;
    std::uint64_t job = 0;
    int node = 0;
  };
  /// Both are called in the link's thread: `wished` with each answer, `refused` when the coordinator wants nothing of
  /// this node, with its exit code and text.
  NodeLink(const Ways& ways, std::function<void(const NodeWishes&)> wished,
           std::function<void(int, const std::string&)> refused);
  /// Ends the thread; an answer that is under way is not waited for longer than two seconds.
  ~NodeLink();
  NodeLink(const NodeLink&) = delete;
  NodeLink& operator=(const NodeLink&) = delete;

  /// To be told as soon as possible; one that was not sent yet is replaced.
  void tell(NodeState state);
  /// Returns when the newest state has been answered, or at the deadline.
  void flush(Deadline deadline);

 private:
  void work();
  bool send(const NodeState& state);

  msg::Client client_;
  std::function<void(const NodeWishes&)> wished_;
  std::function<void(int, const std::string&)> refused_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<NodeState> newest_;  // not sent yet
  bool busy_ = false, ending_ = false;
  std::thread thread_;
};

}  // namespace ganymede::coordinator
