#include "services/worker/engine/inference/sibling.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "common/base/error.h"
#include "common/os/process.h"

namespace ganymede::worker {
namespace {

struct Pipe {
  os::Fd read, write;
};

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail("A pipe cannot be made: {}.", std::strerror(errno));
  return {os::Fd(ends[0]), os::Fd(ends[1])};
}

/// Starts a program beside this one with `end` as its file descriptor `target`.
int start(const std::vector<std::string>& arguments, int end, int target) {
  std::string path = os::program_folder() + "/" + arguments.at(0);
  std::vector<char*> pointers;
  for (const std::string& argument : arguments) pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, end, target);
  int pid = -1;
  int error = ::posix_spawn(&pid, path.c_str(), &actions, nullptr, pointers.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) fail("{} cannot be started ({}): build it first.", path, std::strerror(error));
  return pid;
}

int wait_for(int pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

}  // namespace

Sibling::Sibling(const std::vector<std::string>& arguments) : name_(arguments.at(0)) {
  std::signal(SIGPIPE, SIG_IGN);
  Pipe pipe = make_pipe();
  pid_ = start(arguments, pipe.read.get(), STDIN_FILENO);
  input_ = std::move(pipe.write);
}

Sibling::~Sibling() {
  input_ = os::Fd();
  wait_for(pid_);
}

void Sibling::write(const std::string& text) {
  for (std::size_t sent = 0; sent < text.size();) {
    ssize_t count = ::write(input_.get(), text.data() + sent, text.size() - sent);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail("{} ended before all was said.", name_);
    sent += static_cast<std::size_t>(count);
  }
}

std::string run_sibling(const std::vector<std::string>& arguments) {
  Pipe pipe = make_pipe();
  int pid = start(arguments, pipe.write.get(), STDOUT_FILENO);
  pipe.write = os::Fd();
  std::string output;
  std::array<char, 1 << 16> buffer{};
  while (true) {
    ssize_t count = ::read(pipe.read.get(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    output.append(buffer.data(), static_cast<std::size_t>(count));
  }
  int status = wait_for(pid);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return output;
  ExitCode code = WIFEXITED(status) && WEXITSTATUS(status) == 2 ? ExitCode::usage : ExitCode::failed;
  throw Error(code, fmt::format("{} {} failed; its own message stands above.", arguments[0],
                                arguments.size() > 1 ? arguments[1] : ""));
}

}  // namespace ganymede::worker
