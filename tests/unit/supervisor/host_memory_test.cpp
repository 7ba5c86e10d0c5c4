#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/error.h"
#include "launcher/supervisor/host_budget.h"

namespace ganymede::launcher {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::uint64_t mib = 1u << 20;

HostBudget four_cells() {
  HostBudget budget;
  budget.cells = 4;
  budget.rows = {{"control", 2 * mib}, {"master", 512 * mib}, {"arena", 86 * mib}};  // 600 MiB a cell
  budget.available = 4000 * mib;
  return budget;
}

std::vector<os::MemoryHolder> python() { return {{12, "python3", 3000 * mib, 0}, {0, "/dev/shm/left", 2000 * mib, 0}}; }

std::string refusal(const HostBudget& budget) {
  try {
    require_fit(budget, python);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::failed);
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    return error.what();
  }
  return "it was taken";
}

TEST(HostMemory, FitsOnEveryNodeOrIsRefusedWithTheNumbersOfAll) {
  HostBudget budget = four_cells();
  std::vector<std::vector<int>> cells = {{0}, {0}, {1}, {1}};
  place_on_nodes(budget, cells, {{0, true, 0, 2000 * mib}, {1, true, 0, 1200 * mib}, {4, false, 0, 9000 * mib}});
  EXPECT_EQ(refusal(budget), "it was taken");
  EXPECT_TRUE(tight(budget)) << "node 1 is full to the byte";
  place_on_nodes(budget, cells, {{0, true, 0, 2000 * mib}, {1, true, 0, 1199 * mib}, {4, false, 0, 9000 * mib}});
  EXPECT_EQ(
      refusal(budget),
      "1.17 GiB of host memory are needed on NUMA node 1 for 2 cells (600 MiB each, most of it master 512 MiB and "
      "arena 86 MiB), but it has only 1.17 GiB free (NUMA node 0: 1.95 GiB, node 1: 1.17 GiB): use fewer "
      "parallel.ranks, a smaller model, checkpoint.side_fraction or offload.fraction, free memory on that node, or "
      "set topology.bind_memory = false, which lets them lie on any. The largest holders of memory here: python3 "
      "(process 12) 2.93 GiB; /dev/shm/left 1.95 GiB.");
}

TEST(HostMemory, CellOfSeveralNodesNeedsAPartOnEach) {
  HostBudget budget = four_cells();
  budget.cells = 1;
  place_on_nodes(budget, {{0, 1}}, {{0, true, 0, 300 * mib}, {1, true, 0, 300 * mib}});
  EXPECT_EQ(refusal(budget), "it was taken");
  place_on_nodes(budget, {{0, 1}}, {{0, true, 0, 299 * mib}, {1, true, 0, 3000 * mib}});
  EXPECT_THAT(refusal(budget), HasSubstr("300 MiB of host memory are needed on NUMA node 0 for 1 cell"));
}

TEST(HostMemory, CellsThatMayLieAnywhereNeedNoNode) {
  HostBudget budget = four_cells();
  std::vector<os::NodeMemory> nodes = {{0, true, 0, 1}, {1, true, 0, 4000 * mib}};
  place_on_nodes(budget, {{}, {}, {}, {}}, nodes);
  EXPECT_EQ(refusal(budget), "it was taken");
  budget.available = 2000 * mib;
  EXPECT_THAT(refusal(budget), HasSubstr("only 1.95 GiB free (NUMA node 0: 1 B, node 1: 3.91 GiB): use"));
  place_on_nodes(budget, {{0}, {0}, {0}, {0}}, {{0, true, 0, 1}});
  EXPECT_THAT(refusal(budget), Not(HasSubstr("NUMA"))) << "of one node there is nothing to tell";
}

TEST(HostMemory, TableShowsTheNodesThatCellsAreBoundTo) {
  HostBudget budget = four_cells();
  place_on_nodes(budget, {{1}, {1}, {1}, {1}}, {{0, true, 0, 2000 * mib}, {1, true, 0, 3000 * mib}});
  EXPECT_THAT(table(budget), HasSubstr("\nNUMA node 1      needed    2.34 GiB\n              available    2.93 GiB"));
  EXPECT_THAT(table(budget), Not(HasSubstr("NUMA node 0")));
}

TEST(HostMemory, LimitOfTheControlGroupIsNamedWithItsFile) {
  HostBudget budget = four_cells();
  budget.available = 1000 * mib;
  budget.limit_file = "/sys/fs/cgroup/job/memory.max";
  EXPECT_THAT(refusal(budget), AllOf(HasSubstr("the control group of this run has only 1000 MiB left "
                                               "(/sys/fs/cgroup/job/memory.max)"),
                                     HasSubstr("ask for a job with more memory"), HasSubstr("python3")));
}

TEST(HostMemory, WhatIsNotKnownRefusesNothing) {
  HostBudget budget = four_cells();
  budget.known = false;
  budget.available = 0;
  EXPECT_EQ(refusal(budget), "it was taken");
  EXPECT_EQ(summary(budget), "host memory: 2.34 GiB needed by 4 cells, not known how much available");
  EXPECT_THAT(table(budget), Not(HasSubstr("available")));
  budget.limited = true;  // the configuration says how much
  budget.available = 1;
  EXPECT_THAT(refusal(budget), AllOf(HasSubstr("host_memory_limit_gib allows 1 B"), Not(HasSubstr("python3"))));
}

}  // namespace
}  // namespace ganymede::launcher
