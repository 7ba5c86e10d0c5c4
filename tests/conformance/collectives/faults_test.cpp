#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "tests/conformance/collectives/world.h"

namespace ganymede::collectives {
namespace {

class CollectiveFaults : public testing::TestWithParam<Backend> {};

std::vector<Backend> connected() {
  auto all = backends();
  std::erase_if(all, [](const Backend& backend) { return backend.largest < 2; });
  return all;
}
INSTANTIATE_TEST_SUITE_P(Backends, CollectiveFaults, testing::ValuesIn(connected()),
                         [](const auto& given) { return given.param.name; });

/// One all_gather of a megabyte a rank.
void gather(Communicator& world, Deadline deadline) {
  std::vector<std::size_t> offsets(world.size() + 1);
  for (int member = 0; member <= world.size(); ++member) offsets[member] = member * (1u << 20);
  std::vector<std::byte> mine(1u << 20), all(offsets.back());
  world.all_gather(mine, all, offsets)->wait(deadline);
}

TEST_P(CollectiveFaults, APeerThatIsGoneEndsTheWait) {
  std::atomic<int> failed{0};
  run_world(GetParam(), 3, [&](Communicator& world) {
    gather(world, soon());
    if (world.rank() == 1) return;  // its communicator goes, and with it the connections
    try {
      while (true) gather(world, soon());
    } catch (const CollectiveError& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr("world"));
      ++failed;
    }
  });
  EXPECT_EQ(failed, 2);
}

TEST_P(CollectiveFaults, APeerThatStallsIsGivenUpAtTheDeadline) {
  std::atomic<bool> gave_up{false};
  run_world(GetParam(), 2, [&](Communicator& world) {
    if (world.rank() == 1) {
      while (!gave_up) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      return;
    }
    EXPECT_THROW(gather(world, Deadline::after_seconds(0.2)), CollectiveError);
    gave_up = true;
  });
  EXPECT_TRUE(gave_up);
}

TEST_P(CollectiveFaults, AbortFromAnotherThreadEndsAWaitAndAllLaterOnes) {
  std::atomic<bool> done{false};
  run_world(GetParam(), 2, [&](Communicator& world) {
    if (world.rank() == 1) {
      while (!done) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      return;
    }
    std::thread aborter([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      world.abort();
    });
    EXPECT_THROW(gather(world, soon()), CollectiveError);
    EXPECT_THROW(gather(world, soon()), CollectiveError);
    aborter.join();
    done = true;
  });
  EXPECT_TRUE(done);
}

TEST_P(CollectiveFaults, AGroupFormsAgainAfterAFault) {
  auto store = std::make_shared<MemoryStore>();
  std::vector<int> members{0, 1, 2};
  std::vector<std::thread> threads;
  std::atomic<int> complete{0};
  for (int rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank] {
      for (int generation = 1; generation <= 3; ++generation) {
        auto world =
            GetParam().make(Group{"world of generation " + std::to_string(generation), members, rank, 20}, store);
        gather(*world, soon());
        if (rank == generation % 3) continue;  // this one "dies": its connections break
        try {
          while (true) gather(*world, soon());
        } catch (const CollectiveError&) {
        }
      }
      ++complete;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(complete, 3);
}

TEST_P(CollectiveFaults, AMemberThatNeverComesIsAnErrorThatNamesTheGroup) {
  auto store = std::make_shared<MemoryStore>();
  try {
    GetParam().make(Group{"lonely", {0, 1}, 0, 0.5}, store);
    FAIL() << "the group formed without its second member";
  } catch (const CollectiveError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("lonely"));
  }
}

}  // namespace
}  // namespace ganymede::collectives
