#include "launcher/cli/run_access.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "common/base/error.h"
#include "common/os/fd.h"
#include "common/service/run_directory.h"

namespace ganymede::cli {

void enter_run(const std::string& run) {
  if (run.empty()) fail_usage("RUN is empty: name a run directory, for example runs/quickstart.");
  std::error_code ignored;
  bool is_run = std::filesystem::is_directory(run + "/ipc", ignored);
  if (!is_run) fail_usage("{} is not a run directory (it has no ipc/): name one, for example runs/quickstart.", run);
  if (chdir(run.c_str()) != 0) fail("Run directory {} cannot be entered: {}.", run, std::strerror(errno));
}

bool run_is_alive() {
  os::Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) fail("No socket could be made: {}.", std::strerror(errno));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, service::keeper_socket, sizeof(address.sun_path) - 1);
  if (connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) return true;
  if (errno == EACCES || errno == EPERM) fail("The run's sockets belong to another user: {}.", std::strerror(errno));
  return errno == EAGAIN;  // it listens, but its queue is full
}

bool launcher_serves() { return access(service::launcher_socket, F_OK) == 0; }

}  // namespace ganymede::cli
