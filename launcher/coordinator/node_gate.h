#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "common/msg/server.h"
#include "launcher/coordinator/world_layout.h"

namespace ganymede::coordinator {

/// The coordinator's socket for the other nodes. It listens from the start, while node 0 still packs a dataset or makes
/// its segments, so that the others know that they have to wait; and until they all know how the run ended.
class NodeGate {
 public:
  /// Throws Error when the port is taken.
  NodeGate(const NodeAddress& address, const std::string& secret_key, int nodes);
  NodeGate(const NodeGate&) = delete;
  NodeGate& operator=(const NodeGate&) = delete;

  /// Requests are answered by `handler` from now on, in the server's thread; the one before does not run any more when
  /// this returns.
  void open(msg::Server::Handler handler);
  /// From now on every node that asks learns that it has to wait, as before `open`.
  void close() { open({}); }
  /// From now on every node that asks learns that the run ended with this.
  void end(int exit_code, const std::string& text);
  /// Gives the nodes that are known the time to ask; returns at once when there are none.
  void linger();

 private:
  msg::Message answer(const std::string& identity, const msg::Message& request);

  int nodes_;
  std::mutex mutex_;
  msg::Server::Handler handler_;  // empty: not open yet
  bool known_ = false;            // a node has asked
  std::unique_ptr<msg::Server> server_;
};

}  // namespace ganymede::coordinator
