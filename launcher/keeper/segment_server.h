#pragma once

#include <map>
#include <string>

#include "common/base/deadline.h"
#include "common/os/fd.h"
#include "launcher/keeper/segment_store.h"

namespace ganymede::keeper {

/// Serves a SegmentStore on a UNIX socket (grammar: common/shm/keeper_protocol.h) to processes of the same user. Never
/// blocks: a client that connects and says nothing is dropped after two seconds, the oldest one first when there are
/// too many. Not thread-safe.
class SegmentServer {
 public:
  /// Binds; a socket file that is there already is a dead keeper's (the caller holds the run's lock). Throws Error.
  SegmentServer(std::string path, SegmentStore& store);
  /// Removes the socket file.
  ~SegmentServer();
  SegmentServer(const SegmentServer&) = delete;
  SegmentServer& operator=(const SegmentServer&) = delete;

  /// Readable when `serve` has something to do.
  int fd() const { return ready_.get(); }
  /// Takes new connections, answers what was asked, drops who is late.
  void serve();

 private:
  struct Connection {
    os::Fd socket;
    Deadline deadline;
  };
  void accept_all();
  void answer(int socket);
  void watch(int socket);

  std::string path_;
  SegmentStore& store_;
  os::Fd listening_;
  os::Fd ready_;  // an epoll instance over all sockets
  std::map<int, Connection> connections_;
};

}  // namespace ganymede::keeper
