#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "common/base/error.h"
#include "common/collectives/gloo/gloo_backend.h"
#include "tests/conformance/collectives/world.h"

namespace ganymede::collectives {
namespace {

class CollectiveFaults : public testing::TestWithParam<Setting> {};
INSTANTIATE_TEST_SUITE_P(Backends, CollectiveFaults, testing::ValuesIn(connected()),
                         [](const auto& given) { return given.param.name; });

/// One all_gather of half a megabyte a rank.
void gather(Member& member, Communicator& world, Deadline deadline) {
  constexpr std::size_t each = 1u << 19;
  member.reuse_memory();
  std::vector<std::size_t> offsets = boundaries(std::vector<std::size_t>(world.size(), each));
  auto mine = member.memory<std::byte>(each), all = member.memory<std::byte>(offsets.back());
  mine.back() = std::byte{7};
  world.all_gather(mine, all, offsets)->wait(deadline);
  for (int from = 0; from < world.size(); ++from) ASSERT_EQ(all[offsets[from + 1] - 1], std::byte{7});
}

TEST_P(CollectiveFaults, APeerThatIsGoneEndsTheWait) {
  std::atomic<int> failed{0};
  int ranks = 3;
  std::atomic<bool> left{false};
  auto store = std::make_shared<MemoryStore>();
  auto memory = std::make_shared<PublishedMemory>(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      Member member(GetParam(), rank, ranks, store, memory);
      auto world = member.form("world");
      gather(member, *world, soon());
      if (rank == 1) return;  // its communicator goes, and with it what the others wait for
      try {
        while (true) gather(member, *world, soon());
      } catch (const CollectiveError& error) {
        EXPECT_THAT(error.what(), testing::HasSubstr("world"));
        ++failed;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failed, 2);
}

TEST_P(CollectiveFaults, APeerThatStallsIsGivenUpAtTheDeadline) {
  std::atomic<bool> gave_up{false};
  run_world(GetParam(), 2, [&](Member& member, Communicator& world) {
    if (world.rank() == 1) {
      while (!gave_up) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      return;
    }
    EXPECT_THROW(gather(member, world, Deadline::after_seconds(0.1)), CollectiveError);
    gave_up = true;
  });
  EXPECT_TRUE(gave_up);
}

TEST_P(CollectiveFaults, ADeadlineThatIsOverEndsWhatNobodyWaitedForToo) {
  std::atomic<bool> gave_up{false};
  run_world(GetParam(), 2, [&](Member& member, Communicator& world) {
    if (world.rank() == 1) {
      while (!gave_up) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      return;
    }
    std::vector<std::size_t> offsets{0, 1, 2};
    auto mine = member.memory<std::byte>(1), all = member.memory<std::byte>(2);
    PendingPtr first = world.all_gather(mine, all, offsets), second = world.all_gather(mine, all, offsets);
    std::this_thread::sleep_for(std::chrono::milliseconds(30));  // it is under way behind this thread
    EXPECT_THROW(first->wait(Deadline::after_seconds(0.05)), CollectiveError);
    EXPECT_THROW(second->wait(Deadline::after_seconds(0.05)), CollectiveError);
    gave_up = true;
  });
}

TEST_P(CollectiveFaults, AbortFromAnotherThreadEndsAWaitAndAllLaterOnes) {
  std::atomic<bool> done{false};
  run_world(GetParam(), 2, [&](Member& member, Communicator& world) {
    if (world.rank() == 1) {
      while (!done) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      return;
    }
    std::thread aborter([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      world.abort();
    });
    EXPECT_THROW(gather(member, world, soon()), CollectiveError);
    EXPECT_THROW(gather(member, world, soon()), CollectiveError);
    aborter.join();
    done = true;
  });
  EXPECT_TRUE(done);
}

TEST_P(CollectiveFaults, AGroupFormsAgainAfterAFaultOnTheSameSegments) {
  auto store = std::make_shared<MemoryStore>();
  auto memory = std::make_shared<PublishedMemory>(3);
  std::vector<std::thread> threads;
  std::atomic<int> complete{0};
  for (int rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank] {
      Member member(GetParam(), rank, 3, store, memory);
      for (int generation = 1; generation <= 3; ++generation) {
        auto world = member.form("world of generation " + std::to_string(generation));
        gather(member, *world, soon());
        if (rank == generation % 3) continue;  // this one "dies"
        try {
          while (true) gather(member, *world, soon());
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
  Member member(GetParam(), 0, 2, std::make_shared<MemoryStore>(), std::make_shared<PublishedMemory>(2));
  try {
    member.form("lonely", 0.2);
    FAIL() << "the group formed without its second member";
  } catch (const CollectiveError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("lonely"));
  }
}

TEST(SharedMemoryFaults, MembersThatDisagreeAboutTheSizeOfAPartAreToldSo) {
  Setting setting{.name = "shm", .worlds = {2}, .backend = Backend::shm};
  std::atomic<int> told{0};
  run_world(setting, 2, [&](Member& member, Communicator& world) {
    std::vector<std::size_t> offsets{0, 100, world.rank() == 0 ? 200u : 300u};
    auto mine = member.memory<std::byte>(offsets[world.rank() + 1] - offsets[world.rank()]);
    auto all = member.memory<std::byte>(300);
    try {
      world.all_gather(mine, all, offsets)->wait(soon());
      ADD_FAILURE() << "rank " << world.rank() << " noticed nothing";
    } catch (const CollectiveError& error) {
      if (std::string(error.what()).find("sends 200 bytes") != std::string::npos) ++told;
    }
  });
  EXPECT_EQ(told, 1);  // the other one sees that its peer has left
}

TEST(SharedMemoryFaults, APredecessorsCommunicatorEndsWhenItsSuccessorOpensThePort) {
  auto memory = std::make_shared<PublishedMemory>(1);
  std::unique_ptr<Port> before = memory->port(0);
  OwnChannel channel = before->take(1);
  channel.open();
  EXPECT_LT(channel.head->left.load(), channel.generation);
  std::unique_ptr<Port> after = memory->port(0);
  EXPECT_EQ(channel.head->left.load(), channel.generation);
  EXPECT_GT(after->take(1).generation, channel.generation);
}

TEST(SharedMemoryFaults, ChannelsAreLimitedAndComeBack) {
  auto memory = std::make_shared<PublishedMemory>(1);
  std::unique_ptr<Port> port = memory->port(0);
  std::vector<OwnChannel> taken;
  for (int i = 0; i < 8; ++i) taken.push_back(port->take(2));
  EXPECT_THROW(port->take(2), Error);
  port->give_back(taken[3]);
  EXPECT_EQ(port->take(2).index, 3);
  port->give_back(taken[5]);
  EXPECT_THROW(port->take(1000), Error);  // too many members for its size
}

TEST(Gloo, AnInterfaceThatIsNotHereIsNoFaultOfTheOthers) {
  try {
    make_gloo({"world", {0, 1}, 0, 1, {}}, std::make_shared<MemoryStore>(), "no-such-if0");
    FAIL() << "it was taken";
  } catch (const Error& error) {  // no CollectiveError: no new generation mends it
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_THAT(error.what(), testing::HasSubstr("'no-such-if0' (topology.interface)"));
  }
}

TEST(Factory, RefusesShmAcrossNodesAndWithoutPublishedMemory) {
  Group group{"world", {0, 1}, 0, 1, {}};
  auto memory = std::make_shared<PublishedMemory>(2);
  std::unique_ptr<Port> port = memory->port(0);
  auto store = std::make_shared<MemoryStore>();
  EXPECT_THROW(make_communicator(group, {Backend::shm, 1, port.get(), store}), Error);
  EXPECT_THROW(make_communicator(group, {Backend::shm, 0, nullptr, store}), Error);
}

}  // namespace
}  // namespace ganymede::collectives
