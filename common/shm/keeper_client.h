#pragma once

#include "common/base/deadline.h"
#include "common/os/fd.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ganymede::shm {

struct HeldSegment {
  std::string name;  // "rank.0/master"
  std::uint64_t bytes = 0;
};

/// Talks to the node's keeper over its UNIX socket (`ipc/keeper.sock` in the run directory; SOCK_SEQPACKET, one
/// request and one reply a connection, descriptors by SCM_RIGHTS). Every call throws Error at its deadline or when
/// the keeper refuses, with the keeper's reason.
class KeeperClient {
 public:
  explicit KeeperClient(std::string socket_path = "ipc/keeper.sock") : path_(std::move(socket_path)) {}
  /// A new zeroed memfd of `bytes`, held by the keeper under `name`. Refused when the name is taken.
  os::Fd create(const std::string& name, std::uint64_t bytes, Deadline deadline) const;
  os::Fd get(const std::string& name, Deadline deadline) const;
  void drop(const std::string& name, Deadline deadline) const;
  std::vector<HeldSegment> list(Deadline deadline) const;

 private:
  std::string path_;
};

/// Name under which the segment of a cell is held: "rank.<rank>/<segment>".
std::string held_name(int rank, const std::string& segment);

}  // namespace ganymede::shm
