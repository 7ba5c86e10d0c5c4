#include "common/os/machine.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <vector>

namespace ganymede::os {
namespace {

TEST(Machine, CountsWhatThisProcessMayHave) {
  Machine m = inspect_machine();
  EXPECT_GE(m.cores, 1);
  EXPECT_GT(m.memory_available, 0u);
  EXPECT_LE(m.memory_available, m.memory_total);
  EXPECT_EQ(m.page_size % 4096, 0u);
  EXPECT_FALSE(m.numa_nodes.empty());
  EXPECT_GT(m.open_files_limit, 0u);
  EXPECT_FALSE(m.cpu_name.empty());
}

TEST(Machine, CoresFollowTheAffinityMask) {
  pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    auto all = cores_of(0, 1, inspect_machine());
    pin_this_thread({all.back()});
    bool right = inspect_machine().cores == 1 && cores_of(0, 1, inspect_machine()) == std::vector{all.back()};
    ::_exit(right ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(CoresOf, BlocksAreDisjointContiguousAndTakeAll) {
  Machine m = inspect_machine();
  auto all = cores_of(0, 1, m);
  EXPECT_EQ(static_cast<int>(all.size()), m.cores);
  for (int ranks = 1; ranks <= m.cores; ++ranks) {
    std::vector<int> joined;
    for (int rank = 0; rank < ranks; ++rank) {
      auto block = cores_of(rank, ranks, m);
      EXPECT_FALSE(block.empty());
      joined.insert(joined.end(), block.begin(), block.end());
    }
    EXPECT_EQ(joined, all);
  }
}

TEST(CoresOf, MoreRanksThanCoresShareAll) {
  Machine m = inspect_machine();
  EXPECT_EQ(cores_of(m.cores, m.cores + 1, m), cores_of(0, 1, m));
}

TEST(Machine, FreeDiskIsThatOfTheNearestParent) {
  EXPECT_GT(free_disk_bytes("/"), 0u);
  EXPECT_EQ(free_disk_bytes("/no/such/folder") > 0, true);
  EXPECT_GT(free_disk_bytes("relative/path/that/does/not/exist"), 0u);
}

TEST(Machine, ResidentMemoryGrowsWithWhatIsTouched) {
  auto before = resident_bytes();
  EXPECT_GT(before, 0u);
  std::vector<char> block(64 << 20, 1);
  EXPECT_GE(resident_bytes(), before + (60u << 20)) << static_cast<int>(block[12345]);
}

}  // namespace
}  // namespace ganymede::os
