#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "common/base/error.h"
#include "tests/support/process_wait.h"
#include "tests/support/undisturbed_run.h"

/// No memory is left while a run goes on: the kernel kills one of its processes.
namespace ganymede::test {
namespace {

namespace fs = std::filesystem;

constexpr long limit = 64 << 20;

/// A control group of little memory, empty at the end.
class SmallGroup {
 public:
  SmallGroup() {
    for (auto [root, file] :
         {std::pair("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), std::pair("/sys/fs/cgroup", "memory.max")}) {
      folder_ = fmt::format("{}/gm{}", root, ::getpid());
      std::error_code error;
      if (!fs::exists(root, error) || !fs::create_directory(folder_, error)) continue;
      if (usable_ = write(file, limit); usable_) return;
      fs::remove(folder_, error);
    }
  }
  ~SmallGroup() {
    std::error_code error;  // while a process of it ends
    for (int i = 0; usable_ && i < 500 && !fs::remove(folder_, error); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  SmallGroup(const SmallGroup&) = delete;
  SmallGroup& operator=(const SmallGroup&) = delete;

  bool usable() const { return usable_; }
  bool add(int pid) const { return write("cgroup.procs", pid); }

 private:
  bool write(const std::string& file, long value) const {
    if (!fs::exists(folder_ + "/" + file)) return false;
    std::ofstream out(folder_ + "/" + file);
    return static_cast<bool>(out << value << std::flush);
  }

  std::string folder_;
  bool usable_ = false;
};

/// Takes memory until `pid` is gone.
class Hog {
 public:
  Hog(const SmallGroup& group, int pid) : child_(::fork()) {
    if (child_ != 0) return;
    group.add(::getpid());
    std::vector<std::vector<char>> taken;
    while (::kill(pid, 0) == 0) {
      if (taken.size() < 2 * (limit >> 20)) taken.emplace_back(1 << 20, 'x');
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ::_exit(0);
  }
  ~Hog() {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }
  Hog(const Hog&) = delete;
  Hog& operator=(const Hog&) = delete;

 private:
  pid_t child_;
};

TEST(OutOfMemory, AWorkerThatTheKernelKillsComesBackAndTheEventSaysWhy) {
  SmallGroup group;
  if (!group.usable()) GTEST_SKIP() << "control groups of memory cannot be made here";
  auto settings = UndisturbedRun::settings(300, 0);
  TrainingRun run(settings);
  run.start();
  run.wait_for_step(8);
  int pid = run.pid_of("worker", 1);
  std::ofstream(fmt::format("/proc/{}/oom_score_adj", pid)) << 1000;
  ASSERT_TRUE(group.add(pid));
  {
    Hog hog(group, pid);
    wait_until([&] { return ::kill(pid, 0) != 0; }, 40, "the worker is killed");
  }
  EXPECT_EQ(run.wait(), 0) << run.output();
  EXPECT_THAT(run.output(), testing::HasSubstr("worker of rank 1 ended: killed by SIGKILL, out of memory"));
  bool told = false;
  for (const auto& line : run.metrics())
    for (const auto& event : line.value("restart_events", nlohmann::json::array()))
      told = told || event["cause"] == "killed by SIGKILL, out of memory";
  EXPECT_TRUE(told);
  UndisturbedRun(settings).expect_same(run);
}

}  // namespace
}  // namespace ganymede::test
