#include "launcher/supervisor/memory_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

#include "launcher/supervisor/crew.h"
#include "tests/support/fake_machine.h"

namespace ganymede::launcher {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::uint64_t mib = 1u << 20;

struct Watched : ::testing::Test {
  std::string look(double now) {
    return watch.look(now, [] { return std::map<int, std::string>{{12, "worker of rank 0"}}; }).value_or("");
  }
  test::FakeMachine machine;
  MemoryWatch watch{machine.root()};
  static constexpr long total = 16 * 1024 * 1024;                                                // KiB
  const long margin = static_cast<long>(memory_margin(std::uint64_t{total} * 1024) / 1024) + 1;  // KiB, rounded up
};

TEST_F(Watched, ShortMemoryIsToldOnceWithTheHolders) {
  machine.process(12, "ganymede-worker", 5000, 1000);
  machine.process(13, "python3", 8000, 0);
  machine.memory(total, margin);
  EXPECT_EQ(look(0), "");
  machine.memory(total, margin - 1);
  EXPECT_THAT(look(10), AllOf(HasSubstr("host memory runs short: only 819 MiB are left on this machine"),
                              HasSubstr("margin of 819 MiB"),
                              HasSubstr("python3 (process 13) 7.81 MiB; worker of rank 0 (process 12) 5.86 MiB, 1000 "
                                        "KiB of it shared"),
                              HasSubstr("parallel.ranks")));
  EXPECT_EQ(look(20), "");
  machine.memory(total, 0);
  EXPECT_EQ(look(30), "") << "it was told";
}

TEST_F(Watched, IsToldAgainOnlyAfterItWasClearlyBetter) {
  machine.memory(total, 0);
  EXPECT_NE(look(0), "");
  machine.memory(total, margin + 1);
  EXPECT_EQ(look(10), "");
  machine.memory(total, margin - 1);
  EXPECT_EQ(look(20), "") << "a little more and a little less is the same trouble";
  machine.memory(total, 2 * margin);
  EXPECT_EQ(look(30), "");
  machine.memory(total, margin - 1);
  EXPECT_NE(look(40), "");
}

TEST_F(Watched, KnowsForSecondsThatTheKernelHasKilledAProcess) {
  EXPECT_FALSE(watch.killed_lately(0)) << "the kernel tells nothing";
  machine.file("proc/vmstat", "pgfault 5\noom_kill 7\n");
  MemoryWatch other(machine.root());
  EXPECT_FALSE(other.killed_lately(0)) << "those before this launcher";
  EXPECT_FALSE(other.killed_lately(10));
  machine.file("proc/vmstat", "pgfault 5\noom_kill 8\n");
  EXPECT_TRUE(other.killed_lately(11));
  EXPECT_TRUE(other.killed_lately(13));
  EXPECT_FALSE(other.killed_lately(15));
}

TEST_F(Watched, LooksEveryTenSeconds) {
  machine.memory(total, total);
  EXPECT_EQ(look(100), "");
  machine.memory(total, 0);
  EXPECT_EQ(look(109), "");
  EXPECT_NE(look(110), "");
}

TEST_F(Watched, GroupThatIsAlmostFullIsNamed) {
  machine.memory(total, total);
  machine.file("proc/self/cgroup", "0::/job\n");
  machine.file("sys/fs/cgroup/job/memory.max", std::to_string(1000 * mib));
  machine.file("sys/fs/cgroup/job/memory.current", std::to_string(990 * mib));
  EXPECT_THAT(look(0), AllOf(HasSubstr("only 10 MiB are left to the control group"), HasSubstr("job/memory.max")));
}

TEST_F(Watched, NothingIsToldOfWhatIsNotKnown) {
  EXPECT_EQ(look(0), "");
  machine.file("proc/meminfo", "MemTotal:  x kB\n");
  EXPECT_EQ(look(10), "");
}

TEST_F(Watched, CrewTellsAPerson) {
  machine.memory(total, 0);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  Terminal terminal(ends[1], false);
  boost::asio::io_context io;
  config::Config config;
  Crew crew(
      io, config, {0, 0}, os::Machine{}, "/bin", "/run", terminal, [](auto&, const auto&) {}, {}, machine.root());
  crew.watch(now_seconds());
  crew.watch(now_seconds());
  close(ends[1]);
  std::string text(4096, '\0');
  text.resize(static_cast<std::size_t>(read(ends[0], text.data(), text.size())));
  close(ends[0]);
  EXPECT_THAT(text, StartsWith("host memory runs short: only 0 B are left on this machine"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
}

TEST(MemoryMargin, IsATwentiethWithinBounds) {
  EXPECT_EQ(memory_margin(40ull << 30), 2ull << 30);
  EXPECT_EQ(memory_margin(480ull << 30), 4ull << 30);
  EXPECT_EQ(memory_margin(2ull << 30), 256 * mib);
  EXPECT_EQ(memory_margin(100 * mib), 50 * mib);
}

}  // namespace
}  // namespace ganymede::launcher
