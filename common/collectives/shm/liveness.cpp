#include "common/collectives/shm/liveness.h"

#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace ganymede::collectives {

ProcessIdentity this_process() {
  struct stat status {};
  bool known = ::stat("/proc/self/ns/pid", &status) == 0;
  return {::getpid(), known ? static_cast<std::uint64_t>(status.st_ino) : 0};
}

void Liveness::watch(int peer, const ProcessIdentity& process) {
  ProcessIdentity own = this_process();
  if (process.pid == own.pid || process.pid_namespace != own.pid_namespace || own.pid_namespace == 0) return;
  os::Fd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, static_cast<pid_t>(process.pid), 0)));
  // Without permission, or on a kernel without pidfds, deadlines alone end the waits.
  if (!pidfd && errno != ESRCH) return;
  bool dead = !pidfd;
  watched_.push_back({peer, std::move(pidfd), dead});
}

bool Liveness::look() {
  bool more = false;
  for (Watched& watched : watched_) {
    if (watched.dead) continue;
    pollfd poll{watched.pidfd.get(), POLLIN, 0};
    watched.dead = ::poll(&poll, 1, 0) > 0;
    more = more || watched.dead;
  }
  return more;
}

bool Liveness::dead(int peer) const {
  return std::any_of(watched_.begin(), watched_.end(),
                     [peer](const Watched& watched) { return watched.peer == peer && watched.dead; });
}

}  // namespace ganymede::collectives
