#include "common/os/process_look.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "common/base/deadline.h"
#include "common/os/process.h"

namespace ganymede::os {
namespace {

class ProcessLook : public testing::Test {
 protected:
  void start(const std::string& script) {
    Command command;
    command.arguments = {"/bin/sh", "-c", script};
    child_ = spawn(command);
  }
  ~ProcessLook() override {
    send_signal(child_, SIGKILL);
    await_ending(child_, Deadline::after_seconds(60));
  }
  template <class Holds>
  bool eventually(Holds holds) {
    Deadline deadline = Deadline::after_seconds(60);
    while (!holds() && !deadline.passed()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    return holds();
  }
  bool becomes(ProcessState state) {
    return eventually([&] { return process_state(child_.pid) == state; });
  }
  Child child_;
};

TEST_F(ProcessLook, TellsWhetherItIsStopped) {
  start("exec sleep 1000");
  EXPECT_TRUE(becomes(ProcessState::lives));
  send_signal(child_, SIGSTOP);
  EXPECT_TRUE(becomes(ProcessState::stopped));
  send_signal(child_, SIGCONT);
  EXPECT_TRUE(becomes(ProcessState::lives));
  EXPECT_EQ(process_state(0), ProcessState::gone);
  EXPECT_FALSE(thread_states(0, {}));
}

TEST_F(ProcessLook, TellsAThreadThatSleepsFromOneThatComputes) {
  start("exec sleep 1000");
  EXPECT_TRUE(eventually([&] { return thread_states(child_.pid, {})->running == 0; }));
  double used = thread_states(child_.pid, {})->cpu_seconds;
  EXPECT_LT(used, 1);
  std::atomic<bool> stop{false};
  std::thread computes([&] {
    ::pthread_setname_np(::pthread_self(), "computes");
    while (!stop) continue;
  });
  double before = thread_states(::getpid(), {})->cpu_seconds;
  EXPECT_TRUE(eventually([&] { return thread_states(::getpid(), {})->cpu_seconds > before + 0.05; }));
  EXPECT_GE(thread_states(::getpid(), {})->running, 1);
  double all = thread_states(::getpid(), {})->cpu_seconds;
  EXPECT_LT(thread_states(::getpid(), {"other", "comp"})->cpu_seconds, all);
  stop = true;
  computes.join();
}

}  // namespace
}  // namespace ganymede::os
