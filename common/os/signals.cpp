#include "common/os/signals.h"

#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>

#include "common/base/error.h"
#include "common/base/run_command.h"

namespace ganymede::os {
namespace {

constexpr int crash_signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};

/// Those that wait_signal takes.
sigset_t handled_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (int s : {SIGINT, SIGTERM, SIGUSR1}) sigaddset(&set, s);
  return set;
}

void put(const char* text) {
  auto ignored = ::write(STDERR_FILENO, text, std::strlen(text));
  static_cast<void>(ignored);
}

const char* crash_name(int signal) {
  switch (signal) {
    case SIGSEGV:
      return "SIGSEGV";
    case SIGBUS:
      return "SIGBUS";
    case SIGILL:
      return "SIGILL";
    case SIGFPE:
      return "SIGFPE";
    default:
      return "SIGABRT";
  }
}

void on_crash(int signal) {
  put("crashed by ");
  put(crash_name(signal));
  put(", stack:\n");
  void* frames[64];
  int depth = ::backtrace(frames, 64);
  ::backtrace_symbols_fd(frames, depth, STDERR_FILENO);
  ::raise(signal);  // the default action (SA_RESETHAND) ends the process when the handler returns
}

/// An exception that nobody can catch, of a library's own thread or through a noexcept function: what it says comes
/// first. Want of memory or threads is no fault of the program: there the sentence is all.
void on_terminate() {
  try {
    if (auto uncaught = std::current_exception()) std::rethrow_exception(uncaught);
    if (std::uncaught_exceptions() > 0) {
      put("A fault while another was dealt with, as when a library can start no more threads: see ulimit -u and -v.\n");
    }
  } catch (const std::exception& error) {
    put(sentence_of(error).c_str());
    put("\n");
    if (is_want_of_resources(error)) ::_exit(static_cast<int>(ExitCode::failed));
  } catch (...) {
    put("Something that is no exception was thrown and not caught.\n");
  }
  std::abort();
}

}  // namespace

void block_signals() {
  sigset_t set = handled_signals();
  sigaddset(&set, SIGUSR2);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
}

int wait_signal(int timeout_ms) {
  sigset_t set = handled_signals();
  timespec limit = {timeout_ms / 1000, timeout_ms % 1000 * 1'000'000L};
  int signal = ::sigtimedwait(&set, nullptr, &limit);
  return signal > 0 ? signal : 0;
}

void install_crash_handler() {
  // The first call of backtrace loads a library, which a handler must not do.
  void* frame[1];
  ::backtrace(frame, 1);
  // A stack of its own, so that a stack overflow can be reported too (of the calling thread).
  static char alternate[64 * 1024];
  stack_t stack{};
  stack.ss_sp = alternate;
  stack.ss_size = sizeof alternate;
  ::sigaltstack(&stack, nullptr);
  struct sigaction action {};
  action.sa_handler = on_crash;
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_ONSTACK;
  for (int s : crash_signals) ::sigaction(s, &action, nullptr);
  std::set_terminate(on_terminate);
}

}  // namespace ganymede::os
