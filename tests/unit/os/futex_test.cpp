#include "common/os/futex.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <new>
#include <thread>

namespace ganymede::os {
namespace {

using Word = std::atomic<std::uint64_t>;

/// Memory that parent and child share after a fork.
class SharedWords : public testing::Test {
 protected:
  void SetUp() override {
    void* at = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(at, MAP_FAILED);
    words = static_cast<Word*>(at);
    for (int i = 0; i < 2; ++i) new (words + i) Word(0);
  }
  void TearDown() override { ::munmap(words, 4096); }
  Word* words = nullptr;
};

TEST_F(SharedWords, StoreWakesAnotherProcess) {
  constexpr std::uint64_t rounds = 2000;
  pid_t child = ::fork();
  ASSERT_GE(child, 0);
  auto until = Deadline::after_seconds(60);
  if (child == 0) {
    for (std::uint64_t i = 1; i <= rounds; ++i) {
      while (words[0].load() != i && !until.passed()) wait_while_equal(words[0], i - 1, until);
      store_and_wake(words[1], i);
    }
    ::_exit(until.passed() ? 1 : 0);
  }
  for (std::uint64_t i = 1; i <= rounds && !until.passed(); ++i) {
    store_and_wake(words[0], i);
    while (words[1].load() != i && !until.passed()) wait_while_equal(words[1], i - 1, until);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(words[1].load(), rounds);
}

TEST_F(SharedWords, WaitEndsAtItsDeadline) {
  auto deadline = Deadline::after_seconds(0.02);
  wait_while_equal(words[0], 0, deadline);
  EXPECT_TRUE(deadline.passed());
}

TEST_F(SharedWords, WaitForAnotherValueReturnsAtOnce) {
  auto deadline = Deadline::after_seconds(3600);
  wait_while_equal(words[0], 7, deadline);
  EXPECT_FALSE(deadline.passed());
}

TEST_F(SharedWords, ChangeOfTheHighHalfAloneIsSeen) {
  // (generation, step) pairs can differ in the half that the kernel does not compare.
  std::thread writer([this] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    words[0].store(1ull << 40, std::memory_order_release);  // and no wake at all
  });
  auto deadline = Deadline::after_seconds(60);
  wait_while_equal(words[0], 0, deadline);
  EXPECT_FALSE(deadline.passed());
  EXPECT_EQ(words[0].load(), 1ull << 40);
  writer.join();
}

}  // namespace
}  // namespace ganymede::os
