#include "services/worker/engine/inference/sibling.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <utility>

#include "common/base/error.h"
#include "common/base/standard_error.h"
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

/// A descriptor of this process as another one of the child.
struct Redirect {
  int here, there;
};

/// Starts a program beside this one.
int start(const std::vector<std::string>& arguments, const std::vector<Redirect>& redirects) {
  std::string path = os::program_folder() + "/" + arguments.at(0);
  std::vector<char*> pointers;
  for (const std::string& argument : arguments) pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  for (const Redirect& one : redirects) ::posix_spawn_file_actions_adddup2(&actions, one.here, one.there);
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

ExitCode code_of(int status) {
  if (!WIFEXITED(status)) return ExitCode::failed;
  int code = WEXITSTATUS(status);
  return code == 0 ? ExitCode::done : code == 2 ? ExitCode::usage : ExitCode::failed;
}

/// A file in memory, read and written from its beginning.
os::Fd memory_file(const std::string& content) {
  os::Fd file(::memfd_create("sibling", MFD_CLOEXEC));
  if (!file) fail("A file in memory cannot be made: {}.", std::strerror(errno));
  auto size = static_cast<ssize_t>(content.size());
  if (::pwrite(file.get(), content.data(), content.size(), 0) != size)
    fail("A file in memory cannot be written: {}.", std::strerror(errno));
  return file;
}

std::string read_all(int fd) {
  std::string content;
  std::array<char, 1 << 16> buffer{};
  while (true) {
    ssize_t count = ::read(fd, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return content;
    content.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

/// Takes the last line of what a program said away from `said`, without the program's name.
std::string take_message(const std::string& program, std::string& said) {
  while (said.ends_with('\n')) said.pop_back();
  auto begin = said.rfind('\n') + 1;  // 0 where there is no other line
  std::string message = said.substr(begin);
  said.resize(begin);
  std::string command = program;  // "ganymede checkpoint", as a person types it
  std::replace(command.begin(), command.end(), '-', ' ');
  for (const std::string& name : {program, command}) {
    if (message.starts_with(name + ": ")) return message.substr(name.size() + 2);
  }
  return message;
}

}  // namespace

Sibling::Sibling(const std::vector<std::string>& arguments) {
  std::signal(SIGPIPE, SIG_IGN);
  Pipe pipe = make_pipe();
  pid_ = start(arguments, {{pipe.read.get(), STDIN_FILENO}});
  input_ = std::move(pipe.write);
}

Sibling::~Sibling() {
  input_ = os::Fd();
  if (pid_ >= 0) wait_for(pid_);
}

void Sibling::finish() {
  input_ = os::Fd();
  ExitCode code = code_of(wait_for(std::exchange(pid_, -1)));
  if (code != ExitCode::done) throw Error(code, "");
}

void Sibling::write(const std::string& text) {
  for (std::size_t sent = 0; sent < text.size();) {
    ssize_t count = ::write(input_.get(), text.data() + sent, text.size() - sent);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      finish();
      throw Error(ExitCode::done, "");  // nobody reads what it writes: it had no reason to go on
    }
    sent += static_cast<std::size_t>(count);
  }
}

std::string run_sibling(const std::vector<std::string>& arguments, const std::string& input) {
  Pipe pipe = make_pipe();
  os::Fd in = memory_file(input), errors = memory_file("");
  int pid =
      start(arguments, {{in.get(), STDIN_FILENO}, {pipe.write.get(), STDOUT_FILENO}, {errors.get(), STDERR_FILENO}});
  pipe.write = os::Fd();
  std::string output = read_all(pipe.read.get());
  ExitCode code = code_of(wait_for(pid));
  ::lseek(errors.get(), 0, SEEK_SET);
  std::string said = read_all(errors.get());
  bool done = code == ExitCode::done;
  std::string message = done ? "" : take_message(arguments.at(0), said);
  print_error("{}", said);
  if (done) return output;
  if (message.empty()) message = fmt::format("{} failed without a word.", fmt::join(arguments, " "));
  throw Error(code, message);
}

}  // namespace ganymede::worker
