#include "common/os/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "common/base/error.h"
#include "common/os/files.h"

extern char** environ;

namespace ganymede::os {
namespace {

/// What the child needs after the fork, made before it: there only async-signal-safe calls are allowed.
struct Prepared {
  std::vector<char*> arguments, environment;
  std::vector<std::string> entries;  // owns the added environment
  Fd output, input;
  bool own_group = false, die_with_parent = false;
  pid_t parent = 0;
};

std::vector<char*> with_end(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const auto& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

void prepare_environment(const Command& command, Prepared& p) {
  auto replaced = [&](std::string_view entry) {
    for (const auto& [name, value] : command.environment) {
      if (entry.starts_with(name + "=")) return true;
    }
    return false;
  };
  for (char** entry = environ; *entry; ++entry) {
    if (!replaced(*entry)) p.entries.emplace_back(*entry);
  }
  for (const auto& [name, value] : command.environment) p.entries.push_back(name + "=" + value);
  p.environment = with_end(p.entries);
}

Prepared prepare(const Command& command) {
  Prepared p;
  p.arguments = with_end(command.arguments);
  prepare_environment(command, p);
  p.own_group = command.own_process_group;
  p.die_with_parent = command.die_with_parent;
  p.parent = ::getpid();
  if (p.own_group) p.input = Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!command.output_file.empty()) {
    p.output = open_for_append(command.output_file);
  }
  return p;
}

void reset_signals() {
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
}

/// In the child. Ends in the new program, or writes errno to `report` and exits.
[[noreturn]] void become(const Prepared& p, int report) {
  if (p.own_group) ::setpgid(0, 0);
  bool orphan = p.die_with_parent && (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || ::getppid() != p.parent);
  if (orphan) ::_exit(127);
  if (p.input) ::dup2(p.input.get(), STDIN_FILENO);
  if (p.output) {
    ::dup2(p.output.get(), STDOUT_FILENO);
    ::dup2(p.output.get(), STDERR_FILENO);
  }
  reset_signals();
  ::execve(p.arguments[0], p.arguments.data(), p.environment.data());
  int error = errno;
  auto ignored = ::write(report, &error, sizeof error);
  static_cast<void>(ignored);
  ::_exit(127);
}

/// 0 when the program runs (the pipe closed at exec), else the child's errno.
int exec_error(int pipe) {
  int error = 0;
  ssize_t n;
  do {
    n = ::read(pipe, &error, sizeof error);
  } while (n < 0 && errno == EINTR);
  return n == sizeof error ? error : 0;
}

}  // namespace

std::string Ending::describe() const {
  if (signal == 0) return fmt::format("exit code {}", exit_code);
  const char* name = ::sigabbrev_np(signal);
  return name ? fmt::format("killed by SIG{}", name) : fmt::format("killed by signal {}", signal);
}

Child spawn(const Command& command) {
  GANYMEDE_CHECK(!command.arguments.empty(), "spawn without a program");
  Prepared p = prepare(command);
  const std::string& program = command.arguments[0];
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) fail("{} cannot be started: {}.", program, std::strerror(errno));
  Fd read_end(ends[0]), write_end(ends[1]);
  Child child;
  child.pid = ::fork();
  if (child.pid < 0) fail("{} cannot be started: {}.", program, std::strerror(errno));
  if (child.pid == 0) become(p, write_end.get());
  write_end = Fd();
  // The child is not reaped yet, so its id is still its own.
  child.pidfd = Fd(static_cast<int>(::syscall(SYS_pidfd_open, child.pid, 0)));
  int error = child.pidfd ? exec_error(read_end.get()) : errno;
  if (error == 0) return child;
  if (!child.pidfd) ::kill(child.pid, SIGKILL);
  ::waitpid(child.pid, nullptr, 0);
  fail("{} cannot be started: {}.", program, std::strerror(error));
}

void send_signal(const Child& child, int signal) {
  if (child.pidfd) ::syscall(SYS_pidfd_send_signal, child.pidfd.get(), signal, nullptr, 0);
}

std::optional<Ending> poll_ending(const Child& child) {
  siginfo_t info{};
  // P_PIDFD
  int result = ::waitid(static_cast<idtype_t>(3), static_cast<id_t>(child.pidfd.get()), &info, WEXITED | WNOHANG);
  if (result != 0) fail("Process {} cannot be waited for: {}.", child.pid, std::strerror(errno));
  if (info.si_pid == 0) return std::nullopt;
  if (info.si_code == CLD_EXITED) return Ending{info.si_status, 0};
  return Ending{-1, info.si_status};
}

std::optional<Ending> await_ending(const Child& child, const Deadline& deadline) {
  bool late = false;
  while (true) {
    if (auto ending = poll_ending(child)) return late ? std::nullopt : ending;
    late = deadline.passed();
    if (late) send_signal(child, SIGKILL);
    pollfd wake{child.pidfd.get(), POLLIN, 0};
    ::poll(&wake, 1, 50);
  }
}

std::string program_folder() {
  std::error_code error;
  auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) fail("The folder of this program cannot be found: {}.", error.message());
  return program.parent_path().string();
}

}  // namespace ganymede::os
