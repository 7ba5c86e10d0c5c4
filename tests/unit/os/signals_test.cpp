#include "common/os/signals.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>

namespace ganymede::os {
namespace {

/// Runs `body` in a child whose stderr is read; its wait status and what it wrote.
template <class Body>
std::pair<int, std::string> in_child(Body body) {
  int ends[2];
  if (::pipe(ends) != 0) return {};
  pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], STDERR_FILENO);
    body();
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string text;
  char piece[4096];
  for (ssize_t n; (n = ::read(ends[0], piece, sizeof piece)) > 0;) text.append(piece, static_cast<std::size_t>(n));
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  return {status, text};
}

TEST(Signals, BlockedOnesAreReceivedByTheWait) {
  auto [status, text] = in_child([] {
    block_signals();
    for (int signal : {SIGINT, SIGTERM, SIGUSR1}) {
      ::raise(signal);
      if (wait_signal(60'000) != signal) ::_exit(1);
    }
    if (wait_signal(1) != 0) ::_exit(2);
  });
  EXPECT_EQ(status, 0);
}

TEST(Signals, TheWarningOfABatchSystemHurtsNobody) {
  auto [status, text] = in_child([] {
    block_signals();
    ::raise(SIGUSR2);
    if (wait_signal(1) != 0) ::_exit(1);
  });
  EXPECT_EQ(status, 0);
}

TEST(Signals, BrokenPipeDoesNotKill) {
  auto [status, text] = in_child([] {
    block_signals();
    int ends[2];
    if (::pipe(ends) != 0) ::_exit(3);
    ::close(ends[0]);
    if (::write(ends[1], "x", 1) != -1) ::_exit(4);
  });
  EXPECT_EQ(status, 0);
}

TEST(CrashHandler, NamesTheSignalAndTheStackAndLetsItKill) {
  for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) {
    auto [status, text] = in_child([signal] {
      install_crash_handler();
      ::raise(signal);
    });
    EXPECT_TRUE(WIFSIGNALED(status));
    EXPECT_EQ(WTERMSIG(status), signal);
    EXPECT_NE(text.find("crashed by SIG"), std::string::npos) << text;
    EXPECT_NE(text.find("unit_os"), std::string::npos) << text;
  }
}

int descend(volatile char* above, int levels) {
  volatile char frame[4096];
  frame[0] = *above;
  return levels == 0 ? 0 : descend(frame, levels - 1) + frame[0];
}

TEST(CrashHandler, ReportsAStackOverflow) {
  auto [status, text] = in_child([] {
    install_crash_handler();
    volatile char start = 1;
    ::_exit(descend(&start, 1 << 30));
  });
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_NE(text.find("crashed by SIGSEGV"), std::string::npos) << text;
}

/// In a thread, as a library's own: nobody can catch it.
template <class Exception>
void end_with(const Exception& exception) {
  std::thread([exception] { throw exception; }).join();
}

TEST(CrashHandler, WantOfMemoryOrThreadsInALibraryIsASentenceWithoutAStack) {
  auto [memory, memory_text] = in_child([] {
    install_crash_handler();
    end_with(std::bad_alloc());
  });
  EXPECT_TRUE(WIFEXITED(memory));
  EXPECT_EQ(WEXITSTATUS(memory), 1);
  EXPECT_NE(memory_text.find("not enough memory"), std::string::npos) << memory_text;
  EXPECT_EQ(memory_text.find("stack"), std::string::npos) << memory_text;
  auto [threads, threads_text] = in_child([] {
    install_crash_handler();
    end_with(std::system_error(EAGAIN, std::generic_category()));
  });
  EXPECT_EQ(WEXITSTATUS(threads), 1);
  EXPECT_NE(threads_text.find("ulimit -u"), std::string::npos) << threads_text;
}

TEST(CrashHandler, SaysWhatAnUncaughtExceptionSaidBeforeTheStack) {
  auto [status, text] = in_child([] {
    install_crash_handler();
    end_with(std::runtime_error("table 12 is corrupt"));
  });
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_TRUE(text.starts_with("table 12 is corrupt\ncrashed by SIGABRT")) << text;
}

}  // namespace
}  // namespace ganymede::os
