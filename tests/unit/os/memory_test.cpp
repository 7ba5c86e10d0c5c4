#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>

#include "common/os/memory_holders.h"
#include "common/os/memory_limit.h"
#include "common/os/node_memory.h"
#include "tests/support/fake_machine.h"

namespace ganymede::os {
namespace {

constexpr std::uint64_t kib = 1024;

struct OfMachine : ::testing::Test {
  test::FakeMachine machine;
  Memory memory() const { return memory_within_limits(machine.root()); }
};
using MemoryLimit = OfMachine;
using MemoryOfNodes = OfMachine;
using Holding = OfMachine;

TEST_F(MemoryLimit, IsWhatTheMachineHasWithoutGroups) {
  machine.memory(1000, 600);
  EXPECT_EQ(memory().total, 1000 * kib);
  EXPECT_EQ(memory().available, 600 * kib);
  EXPECT_EQ(memory().limit_file, "");
}

TEST_F(MemoryLimit, IsLoweredByTheLowestGroupAboveThisProcess) {
  machine.memory(1000, 600);
  machine.file("proc/self/cgroup", "0::/job/step\n");
  machine.file("sys/fs/cgroup/job/memory.max", std::to_string(500 * kib));
  machine.file("sys/fs/cgroup/job/memory.current", std::to_string(400 * kib));
  machine.file("sys/fs/cgroup/job/memory.stat", "anon 7\ninactive_file 102400\n");
  machine.file("sys/fs/cgroup/job/step/memory.max", "max\n");
  machine.file("sys/fs/cgroup/job/step/memory.current", "1\n");
  EXPECT_EQ(memory().total, 500 * kib);
  EXPECT_EQ(memory().available, 200 * kib) << "100 KiB of page cache can be given back";
  EXPECT_EQ(memory().limit_file, machine.root() + "/sys/fs/cgroup/job/memory.max");
}

TEST_F(MemoryLimit, OfVersionOneIsFoundByItsController) {
  machine.memory(1000, 600);
  machine.file("proc/self/cgroup", "5:cpu,memory:/job\n3:pids:/\n");
  machine.file("sys/fs/cgroup/memory/job/memory.limit_in_bytes", std::to_string(300 * kib));
  machine.file("sys/fs/cgroup/memory/job/memory.usage_in_bytes", std::to_string(50 * kib));
  EXPECT_EQ(memory().available, 250 * kib);
}

TEST_F(MemoryLimit, FullGroupHasNothingLeft) {
  machine.memory(1000, 600);
  machine.file("proc/self/cgroup", "0::/\n");
  machine.file("sys/fs/cgroup/memory.max", std::to_string(100 * kib));
  machine.file("sys/fs/cgroup/memory.current", std::to_string(100 * kib));
  EXPECT_EQ(memory().total, 100 * kib);
  EXPECT_EQ(memory().available, 0u);
}

TEST_F(MemoryLimit, GarbledGroupLimitsNothing) {
  machine.memory(1000, 600);
  for (const char* limit : {"", "lots", "-1", "12x", "99999999999999999999999"}) {
    machine.file("proc/self/cgroup", "0::/\nnonsense\n7:memory\n");
    machine.file("sys/fs/cgroup/memory.max", limit);
    machine.file("sys/fs/cgroup/memory.current", "?");
    EXPECT_EQ(memory().available, 600 * kib) << limit;
  }
}

TEST_F(MemoryLimit, WhatTheKernelDoesNotTellIsNotKnown) {
  EXPECT_EQ(memory().total, 0u);
  machine.file("proc/meminfo", "MemTotal:  1000 kB\nMemAvailable:  soon\n");
  EXPECT_EQ(memory().total, 0u);
  machine.file("proc/self/cgroup", "0::/\n");
  machine.file("sys/fs/cgroup/memory.max", std::to_string(100 * kib));
  EXPECT_EQ(memory().available, 100 * kib) << "a group's limit is known all the same";
}

TEST_F(MemoryLimit, LeavesOutNodesWithoutCores) {
  machine.memory(3000, 2500);
  machine.file("sys/devices/system/node/has_cpu", "0-1\n");
  machine.node(0, 1000, 400, 200, 50);
  machine.node(1, 1000, 300, 0, 0);
  machine.node(4, 1000, 1000, 0, 0);  // a GPU's
  EXPECT_EQ(memory().total, 2000 * kib);
  EXPECT_EQ(memory().available, 850 * kib);
}

TEST_F(MemoryOfNodes, TellFreeMemoryAndPageCacheWithoutSharedMemory) {
  machine.file("sys/devices/system/node/has_cpu", "0\n");
  machine.node(1, 2000, 100, 500, 200);
  machine.node(0, 1000, 600, 0, 0);
  auto nodes = memory_of_nodes(machine.root());
  ASSERT_EQ(nodes.size(), 2u);
  EXPECT_EQ(nodes[0].node, 0);
  EXPECT_TRUE(nodes[0].has_cores);
  EXPECT_EQ(nodes[0].available, 600 * kib);
  EXPECT_EQ(nodes[1].total, 2000 * kib);
  EXPECT_EQ(nodes[1].available, 400 * kib);
  EXPECT_FALSE(nodes[1].has_cores);
}

TEST_F(MemoryOfNodes, ThatTellNothingAreLeftOut) {
  EXPECT_TRUE(memory_of_nodes(machine.root()).empty());
  machine.file("sys/devices/system/node/has_cpu", "x-,0-99999999999,\n");
  machine.file("sys/devices/system/node/node0/meminfo", "Node 0 MemTotal: some kB\nNode 0 MemFree:\n");
  machine.file("sys/devices/system/node/node1/other", "");
  machine.file("sys/devices/system/node/nodeX/meminfo", "Node 0 MemTotal: 5 kB\nNode 0 MemFree: 5 kB\n");
  machine.node(2, 1000, 10, 5, 900);
  auto nodes = memory_of_nodes(machine.root());
  ASSERT_EQ(nodes.size(), 1u);
  EXPECT_EQ(nodes[0].available, 10 * kib) << "more shared memory than page cache";
  EXPECT_TRUE(nodes[0].has_cores) << "nobody tells which have";
}

TEST_F(Holding, LargestFirstProcessesAndFilesInMemory) {
  machine.process(12, "python3", 300, 100);
  machine.process(13, "small", 1, 0);
  machine.process(14, "kernel thread", 0, 0);
  machine.file("proc/self/mounts", "tmpfs /dev/my\\040shm tmpfs rw 0 0\next4 /disk ext4 rw 0 0\n");
  machine.file("dev/my shm/a/left", std::string(800 * kib, 'x'));
  machine.file("disk/large", std::string(900 * kib, 'x'));
  auto holders = largest_memory_holders(2, machine.root());
  ASSERT_EQ(holders.size(), 2u);
  EXPECT_EQ(holders[0].name, "/dev/my shm/a/left");
  EXPECT_GE(holders[0].bytes, 800 * kib);
  EXPECT_EQ(describe(holders[1]), "python3 (process 12) 400 KiB, 100 KiB of it shared");
}

TEST_F(Holding, NamesHaveNoEffectOnATerminal) {
  machine.process(12, "\x1b[31mred", 300, 300);
  machine.file("proc/13/status", "RssAnon:\tmany kB\n");
  machine.file("proc/14/other", "");
  auto holders = largest_memory_holders(5, machine.root());
  ASSERT_EQ(holders.size(), 1u);
  EXPECT_EQ(describe(holders[0]), "\\x1b[31mred (process 12) 600 KiB, 300 KiB of it shared");
}

TEST_F(Holding, NothingKnownIsNobody) { EXPECT_TRUE(largest_memory_holders(3, machine.root()).empty()); }

TEST(HoldingHere, ThisProcessIsSeen) {
  auto holders = largest_memory_holders(100'000);
  bool seen = std::any_of(holders.begin(), holders.end(), [](const auto& one) { return one.pid == ::getpid(); });
  EXPECT_TRUE(seen);
}

}  // namespace
}  // namespace ganymede::os
