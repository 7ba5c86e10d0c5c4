#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "tests/conformance/collectives/world.h"

namespace ganymede::collectives {
namespace {

class Collectives : public testing::TestWithParam<Setting> {};
INSTANTIATE_TEST_SUITE_P(Backends, Collectives, testing::ValuesIn(settings()),
                         [](const auto& given) { return given.param.name; });

constexpr std::size_t huge = (1u << 20) + 12345;  // beyond the staging area of a channel

TEST_P(Collectives, GatherPutsUnevenEmptyAndHugePartsInPlace) {
  run_worlds(GetParam(), [](Member& member, Communicator& world) {
    int size = world.size();
    for (std::size_t unit : {std::size_t{0}, std::size_t{1}, std::size_t{4097}, huge / 2}) {
      member.reuse_memory();
      std::vector<std::size_t> sizes(size);
      for (int i = 0; i < size; ++i) sizes[i] = unit * (i % 3);  // member 0 has nothing
      auto offsets = boundaries(sizes);
      auto mine = member.memory<std::byte>(sizes[world.rank()]), all = member.memory<std::byte>(offsets.back());
      for (std::size_t i = 0; i < mine.size(); ++i) mine[i] = pattern(world.rank(), 0, i);
      world.all_gather(mine, all, offsets)->wait(soon());
      for (int from = 0; from < size; ++from) {
        for (std::size_t i = 0; i < sizes[from]; i += 1 + sizes[from] / 997) {
          ASSERT_EQ(all[offsets[from] + i], pattern(from, 0, i)) << "member " << from << " byte " << i;
        }
      }
    }
  });
}

TEST_P(Collectives, GatherOfAPartThatLiesInPlaceLeavesItThere) {
  run_worlds(GetParam(), [](Member& member, Communicator& world) {
    std::vector<std::size_t> offsets = boundaries(std::vector<std::size_t>(world.size(), 100));
    auto all = member.memory<std::byte>(offsets.back());
    Bytes mine = all.subspan(offsets[world.rank()], 100);
    for (std::size_t i = 0; i < 100; ++i) mine[i] = pattern(world.rank(), 1, i);
    world.all_gather(mine, all, offsets)->wait(soon());
    for (int from = 0; from < world.size(); ++from) {
      EXPECT_EQ(all[offsets[from]], pattern(from, 1, 0));
      EXPECT_EQ(all[offsets[from] + 99], pattern(from, 1, 99));
    }
  });
}

TEST_P(Collectives, AllToAllDeliversEvenUnevenAndHugeSplits) {
  run_worlds(GetParam(), [](Member& member, Communicator& world) {
    int size = world.size(), me = world.rank();
    for (std::size_t unit : {std::size_t{0}, std::size_t{777}, huge / 8}) {
      member.reuse_memory();
      auto count = [&](int from, int to) -> std::size_t { return unit == 0 ? 1000 : (from * 3 + to * 5) % 4 * unit; };
      std::vector<std::size_t> sent(size), received(size);
      for (int i = 0; i < size; ++i) {
        sent[i] = count(me, i);
        received[i] = count(i, me);
      }
      auto send_offsets = boundaries(sent), receive_offsets = boundaries(received);
      auto send = member.memory<std::byte>(send_offsets.back()), to = member.memory<std::byte>(receive_offsets.back());
      for (int peer = 0; peer < size; ++peer) {
        for (std::size_t i = 0; i < sent[peer]; ++i) send[send_offsets[peer] + i] = pattern(me, peer, i);
      }
      world.all_to_all(send, send_offsets, to, receive_offsets)->wait(soon());
      for (int from = 0; from < size; ++from) {
        for (std::size_t i = 0; i < received[from]; i += 1 + received[from] / 997) {
          ASSERT_EQ(to[receive_offsets[from] + i], pattern(from, me, i)) << from << " to " << me << " byte " << i;
        }
      }
    }
  });
}

TEST(SharedMemory, ALargeMessageThatBypassesTheCachesArrivesWholeAtAnyAlignment) {
  Setting shm{.name = "shm", .worlds = {2}, .backend = Backend::shm};
  run_world(shm, 2, [](Member& member, Communicator& world) {
    std::size_t first = (7u << 20) + 77, second = (6u << 20) + 13;
    std::vector<std::size_t> offsets{0, first, first + second};
    auto all = member.memory<std::byte>(offsets.back());
    Bytes mine = all.subspan(offsets[world.rank()], offsets[world.rank() + 1] - offsets[world.rank()]);
    for (std::size_t i = 0; i < mine.size(); ++i) mine[i] = pattern(world.rank(), 3, i);
    world.all_gather(mine, all, offsets)->wait(soon());
    for (int from = 0; from < 2; ++from) {
      std::size_t wrong = 0;
      for (std::size_t i = offsets[from]; i < offsets[from + 1]; ++i) {
        wrong += all[i] != pattern(from, 3, i - offsets[from]);
      }
      EXPECT_EQ(wrong, 0u);
    }
  });
}

TEST_P(Collectives, AllReduceSumsIntegersOnEveryMember) {
  run_worlds(GetParam(), [](Member& member, Communicator& world) {
    for (std::size_t count : {0, 1, 1000, 3000}) {
      auto values = member.memory<std::int64_t>(count);
      for (std::size_t i = 0; i < count; ++i) values[i] = (std::int64_t{1} << 40) * world.rank() + i;
      world.all_reduce(values)->wait(soon());
      std::int64_t ranks = world.size() * (world.size() - 1) / 2;
      for (std::size_t i = 0; i < count; ++i) {
        ASSERT_EQ(values[i], (std::int64_t{1} << 40) * ranks + static_cast<std::int64_t>(i) * world.size());
      }
    }
  });
}

TEST_P(Collectives, SeveralUnderWayCompleteInAnyOrderOfTheirWaits) {
  run_worlds(GetParam(), [](Member& member, Communicator& world) {
    constexpr int rounds = 8;
    std::vector<std::size_t> offsets = boundaries(std::vector<std::size_t>(world.size(), 50000));
    std::vector<std::span<std::byte>> all;
    std::vector<PendingPtr> pending;
    for (int round = 0; round < rounds; ++round) {
      auto mine = member.memory<std::byte>(50000);
      std::fill(mine.begin(), mine.end(), pattern(world.rank(), 0, 0, round));
      all.push_back(member.memory<std::byte>(offsets.back()));
      pending.push_back(world.all_gather(mine, all.back(), offsets));
    }
    for (int i = 0; i < rounds; ++i) {
      int round = world.rank() % 2 == 0 ? rounds - 1 - i : i;
      pending[round]->wait(soon());
      for (int from = 0; from < world.size(); ++from) {
        ASSERT_EQ(all[round][offsets[from] + 49999], pattern(from, 0, 0, round));
      }
    }
  });
}

TEST_P(Collectives, BarrierHoldsUntilTheLastHasCome) {
  for (int ranks : GetParam().worlds) {
    std::atomic<int> arrived{0};
    run_world(GetParam(), ranks, [&](Member&, Communicator& world) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5 * world.rank()));
      ++arrived;
      world.barrier(soon());
      EXPECT_EQ(arrived, world.size());
    });
  }
}

TEST_P(Collectives, TwoCommunicatorsMayBeUsedAndWaitedForInDifferentOrder) {
  run_worlds(GetParam(), [&](Member& member, Communicator& world) {
    auto other = member.form("other");
    constexpr std::size_t count = 300000;
    std::vector<std::size_t> offsets = boundaries(std::vector<std::size_t>(world.size(), count));
    Communicator* communicators[] = {&world, other.get()};
    std::span<std::byte> all[2];
    PendingPtr pending[2];
    for (int turn = 0; turn < 2; ++turn) {
      int which = (turn + world.rank()) % 2;
      auto mine = member.memory<std::byte>(count);
      std::fill(mine.begin(), mine.end(), pattern(world.rank(), which, 0));
      all[which] = member.memory<std::byte>(offsets.back());
      pending[which] = communicators[which]->all_gather(mine, all[which], offsets);
    }
    for (int turn = 0; turn < 2; ++turn) pending[(turn + world.rank() / 2) % 2]->wait(soon());
    for (int from = 0; from < world.size(); ++from) {
      EXPECT_EQ(all[0][offsets[from + 1] - 1], pattern(from, 0, 0));
      EXPECT_EQ(all[1][offsets[from + 1] - 1], pattern(from, 1, 0));
    }
    world.barrier(soon());  // nobody leaves while others still receive
  });
}

TEST_P(Collectives, WhatIsNotWaitedForStillReachesThePeers) {
  run_worlds(GetParam(), [](Member& member, Communicator& world) {
    std::vector<std::size_t> offsets = boundaries(std::vector<std::size_t>(world.size(), huge / 4));
    auto mine = member.memory<std::byte>(huge / 4), all = member.memory<std::byte>(offsets.back());
    std::fill(mine.begin(), mine.end(), pattern(world.rank(), 0, 0));
    PendingPtr first = world.all_gather(mine, all, offsets);
    auto other = member.form("other");
    if (world.rank() == 0) other->barrier(soon());  // the others come here only when they have everything
    first->wait(soon());
    EXPECT_EQ(all[offsets[world.size()] - 1], pattern(world.size() - 1, 0, 0));
    if (world.rank() != 0) other->barrier(soon());
  });
}

}  // namespace
}  // namespace ganymede::collectives
