#include "common/base/threads.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <system_error>

namespace ganymede {
namespace {

TEST(Threads, EachRunsWithItsIndex) {
  std::atomic<int> sum = 0;
  for (std::thread& thread : start_threads(
           5, [&](int index) { sum += 1 << index; }, [] {}))
    thread.join();
  EXPECT_EQ(sum, 31);
}

/// Starts eight threads that wait for `ending`, as a user who may have four beside the first (some of them are
/// ThreadSanitizer's); 0: one was refused, and those before it have left.
int start_one_too_many() {
  constexpr uid_t nobody_else = 61234;
  rlimit five{5, 5};
  if (setuid(nobody_else) != 0 || setrlimit(RLIMIT_NPROC, &five) != 0) return 2;
  std::atomic<bool> ending = false;
  std::atomic<int> entered = 0, left = 0;
  try {
    start_threads(
        8,
        [&](int) {
          entered += 1;
          ending.wait(false);
          left += 1;
        },
        [&] {
          ending = true;
          ending.notify_all();
        });
  } catch (const std::system_error& error) {
    return error.code() == std::errc::resource_unavailable_try_again && entered > 0 && left == entered ? 0 : 3;
  }
  return 4;
}

TEST(Threads, OneThatCannotBeStartedEndsTheOthersAndIsAnError) {
  if (getuid() != 0) GTEST_SKIP() << "only root can become a user who has no other process";
  pid_t child = fork();
  if (child == 0) ::_exit(start_one_too_many());
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace ganymede
