#include "common/os/stacks.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <future>
#include <thread>

#include "common/base/error.h"
#include "common/os/files.h"
#include "tests/support/temporary_folder.h"

namespace ganymede::os {
namespace {

int lines_with(const std::string& text, const std::string& part) {
  int count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(Stacks, AreThoseOfAllThreads) {
  prepare_stacks();
  test::TemporaryFolder folder;
  std::promise<void> end;
  std::shared_future<void> ended(end.get_future());
  std::thread waits([ended] {
    pthread_setname_np(pthread_self(), "waits");
    ended.wait();
  });
  std::atomic<bool> over{false};
  std::thread works([&over] {
    pthread_setname_np(pthread_self(), "works");
    while (!over) {
    }
  });
  std::atomic<bool> deaf_ready{false};
  std::thread deaf([ended, &deaf_ready] {
    pthread_setname_np(pthread_self(), "deaf");
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    deaf_ready = true;
    ended.wait();
  });
  while (!deaf_ready) std::this_thread::yield();
  std::string path = folder.path() + "/stacks";
  for (int turn = 0; turn < 3; ++turn) write_stacks(path);
  std::string text = read_file(path);
  end.set_value();
  over = true;
  waits.join();
  works.join();
  deaf.join();
  EXPECT_EQ(lines_with(text, "\"waits\"\n"), 1) << text;
  EXPECT_EQ(lines_with(text, "\"works\"\n"), 1) << text;
  EXPECT_EQ(lines_with(text, "\"deaf\": takes no signals\n"), 1) << text;
  EXPECT_GT(lines_with(text, "\n"), 12) << text;
}

TEST(Stacks, ThatCannotBeWrittenAreAnError) {
  prepare_stacks();
  EXPECT_THROW(write_stacks("/nowhere/stacks"), Error);
}

}  // namespace
}  // namespace ganymede::os
