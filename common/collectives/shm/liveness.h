#pragma once

#include <cstdint>
#include <vector>

#include "common/os/fd.h"

namespace ganymede::collectives {

/// Who a process is, as far as others of its node can tell.
struct ProcessIdentity {
  std::int64_t pid = 0;
  std::uint64_t pid_namespace = 0;  // inode; 0: unknown
};
ProcessIdentity this_process();

/// Notices that a peer's process has ended, through its pidfd: at once, where a timeout takes its time. Peers in
/// another pid namespace, and members that are threads of this process, count as alive. Thread-compatible.
class Liveness {
 public:
  /// `peer`'s process (an index of the caller's choice). Counts as dead when there is no such process any more.
  void watch(int peer, const ProcessIdentity& process);
  /// Looks at all peers. True when one more has ended since the last call.
  bool look();
  bool dead(int peer) const;

 private:
  struct Watched {
    int peer;
    os::Fd pidfd;  // none: dead
    bool dead;
  };
  std::vector<Watched> watched_;
};

}  // namespace ganymede::collectives
