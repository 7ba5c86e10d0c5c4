#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "tests/conformance/collectives/world.h"

namespace ganymede::collectives {
namespace {

struct Case {
  Backend backend;
  int ranks;
};

class Collectives : public testing::TestWithParam<Case> {
 protected:
  void run(const std::function<void(Communicator&)>& body) { run_world(GetParam().backend, GetParam().ranks, body); }
};

std::vector<Case> cases() {
  std::vector<Case> result;
  for (const Backend& backend : backends()) {
    for (int ranks : {1, 2, 3, 5, 8}) {
      if (ranks <= backend.largest) result.push_back({backend, ranks});
    }
  }
  return result;
}

INSTANTIATE_TEST_SUITE_P(Backends, Collectives, testing::ValuesIn(cases()), [](const auto& given) {
  return given.param.backend.name + std::to_string(given.param.ranks);
});

std::vector<std::size_t> boundaries(const std::vector<std::size_t>& sizes) {
  std::vector<std::size_t> result(sizes.size() + 1, 0);
  std::partial_sum(sizes.begin(), sizes.end(), result.begin() + 1);
  return result;
}

TEST_P(Collectives, GatherPutsUnevenEmptyAndHugePartsInPlace) {
  run([](Communicator& world) {
    int size = world.size();
    for (std::size_t unit : {std::size_t{0}, std::size_t{1}, std::size_t{4097}, std::size_t{3} << 20}) {
      std::vector<std::size_t> sizes(size);
      for (int member = 0; member < size; ++member) sizes[member] = unit * (member % 3);  // member 0 has nothing
      auto offsets = boundaries(sizes);
      std::vector<std::byte> mine(sizes[world.rank()]), all(offsets.back(), std::byte{0xee});
      for (std::size_t i = 0; i < mine.size(); ++i) mine[i] = pattern(world.rank(), 0, i);
      world.all_gather(mine, all, offsets)->wait(soon());
      for (int member = 0; member < size; ++member) {
        for (std::size_t i = 0; i < sizes[member]; i += 1 + sizes[member] / 97) {
          ASSERT_EQ(all[offsets[member] + i], pattern(member, 0, i)) << "member " << member << " byte " << i;
        }
      }
    }
  });
}

TEST_P(Collectives, GatherOfAPartThatLiesInPlaceLeavesItThere) {
  run([](Communicator& world) {
    std::vector<std::size_t> offsets = boundaries(std::vector<std::size_t>(world.size(), 100));
    std::vector<std::byte> all(offsets.back());
    Bytes mine = Bytes(all).subspan(offsets[world.rank()], 100);
    for (std::size_t i = 0; i < 100; ++i) mine[i] = pattern(world.rank(), 1, i);
    world.all_gather(mine, all, offsets)->wait(soon());
    for (int member = 0; member < world.size(); ++member) {
      EXPECT_EQ(all[offsets[member] + 99], pattern(member, 1, 99));
    }
  });
}

TEST_P(Collectives, AllToAllDeliversEvenAndUnevenSplits) {
  run([](Communicator& world) {
    int size = world.size(), me = world.rank();
    for (bool even : {true, false}) {
      auto count = [&](int from, int to) -> std::size_t { return even ? 1000 : (from * 3 + to * 5) % 4 * 777; };
      std::vector<std::size_t> sent(size), received(size);
      for (int member = 0; member < size; ++member) {
        sent[member] = count(me, member);
        received[member] = count(member, me);
      }
      auto send_offsets = boundaries(sent), receive_offsets = boundaries(received);
      std::vector<std::byte> send(send_offsets.back()), receive(receive_offsets.back());
      for (int to = 0; to < size; ++to) {
        for (std::size_t i = 0; i < sent[to]; ++i) send[send_offsets[to] + i] = pattern(me, to, i);
      }
      world.all_to_all(send, send_offsets, receive, receive_offsets)->wait(soon());
      for (int from = 0; from < size; ++from) {
        for (std::size_t i = 0; i < received[from]; ++i) {
          ASSERT_EQ(receive[receive_offsets[from] + i], pattern(from, me, i)) << from << " to " << me;
        }
      }
    }
  });
}

TEST_P(Collectives, ReduceScatterSumsInRankOrder) {
  run([](Communicator& world) {
    int size = world.size(), me = world.rank();
    std::vector<std::int64_t> cut(size + 1, 0);
    for (int member = 0; member < size; ++member) cut[member + 1] = cut[member] + (member % 2 == 0 ? 33 : 0);
    auto value = [](int rank, std::int64_t i) { return (rank + 1) * 0.1f + static_cast<float>(i) * 1e-7f; };
    std::vector<float> values(cut.back());
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = value(me, i);
    std::vector<float> sum(cut[me + 1] - cut[me]);
    world.reduce_scatter(values, cut, sum)->wait(soon());
    for (std::size_t i = 0; i < sum.size(); ++i) {
      float expected = value(0, cut[me] + i);
      for (int rank = 1; rank < size; ++rank) expected += value(rank, cut[me] + i);
      EXPECT_EQ(std::memcmp(&sum[i], &expected, sizeof expected), 0) << i;
    }
  });
}

TEST_P(Collectives, AllReduceSumsIntegersOnEveryMember) {
  run([](Communicator& world) {
    for (std::size_t count : {0, 1, 1000}) {
      std::vector<std::int64_t> values(count);
      for (std::size_t i = 0; i < count; ++i) values[i] = (std::int64_t{1} << 40) * world.rank() + i;
      world.all_reduce(values)->wait(soon());
      std::int64_t ranks = world.size() * (world.size() - 1) / 2;
      for (std::size_t i = 0; i < count; ++i) {
        EXPECT_EQ(values[i], (std::int64_t{1} << 40) * ranks + static_cast<std::int64_t>(i) * world.size());
      }
    }
  });
}

TEST_P(Collectives, SeveralUnderWayCompleteInAnyOrderOfTheirWaits) {
  run([](Communicator& world) {
    constexpr int rounds = 8;
    std::vector<std::size_t> offsets = boundaries(std::vector<std::size_t>(world.size(), 50000));
    std::vector<std::vector<std::byte>> mine(rounds), all(rounds);
    std::vector<PendingPtr> pending;
    for (int round = 0; round < rounds; ++round) {
      mine[round].assign(50000, pattern(world.rank(), 0, 0, round));
      all[round].resize(offsets.back());
      pending.push_back(world.all_gather(mine[round], all[round], offsets));
    }
    for (int round = rounds - 1; round >= 0; --round) {
      pending[round]->wait(soon());
      for (int member = 0; member < world.size(); ++member) {
        ASSERT_EQ(all[round][offsets[member] + 49999], pattern(member, 0, 0, round));
      }
    }
  });
}

TEST_P(Collectives, CountsTheBytesThatLeaveTheRank) {
  run([](Communicator& world) {
    std::vector<std::size_t> offsets = boundaries(std::vector<std::size_t>(world.size(), 1000));
    std::vector<std::byte> mine(1000), all(offsets.back());
    world.all_gather(mine, all, offsets)->wait(soon());
    world.all_gather(mine, all, offsets)->wait(soon());
    for (const Traffic& traffic : world.traffic()) {
      if (traffic.operation != "all_gather") continue;
      EXPECT_EQ(traffic.bytes_sent, 2000u * (world.size() - 1));
    }
    EXPECT_THAT(world.traffic(), testing::Contains(testing::Field(&Traffic::operation, "all_gather")));
  });
}

TEST_P(Collectives, BarrierHoldsUntilTheLastHasCome) {
  std::atomic<int> arrived{0};
  run([&](Communicator& world) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20 * world.rank()));
    ++arrived;
    world.barrier(soon());
    EXPECT_EQ(arrived, world.size());
  });
}

TEST_P(Collectives, TwoCommunicatorsMayBeUsedInDifferentOrder) {
  auto store = std::make_shared<MemoryStore>();
  run([&](Communicator& world) {
    std::vector<int> members(world.size());
    std::iota(members.begin(), members.end(), 0);
    auto other = GetParam().backend.make(Group{"other", members, world.rank(), 20}, store);
    std::vector<std::size_t> offsets = boundaries(std::vector<std::size_t>(world.size(), 10000));
    std::vector<std::byte> first(10000, pattern(world.rank(), 1, 0)), second(10000, pattern(world.rank(), 2, 0));
    std::vector<std::byte> all_first(offsets.back()), all_second(offsets.back());
    PendingPtr pending_first, pending_second;
    if (world.rank() % 2 == 0) {
      pending_first = world.all_gather(first, all_first, offsets);
      pending_second = other->all_gather(second, all_second, offsets);
    } else {
      pending_second = other->all_gather(second, all_second, offsets);
      pending_first = world.all_gather(first, all_first, offsets);
    }
    pending_first->wait(soon());
    pending_second->wait(soon());
    for (int member = 0; member < world.size(); ++member) {
      EXPECT_EQ(all_first[offsets[member]], pattern(member, 1, 0));
      EXPECT_EQ(all_second[offsets[member]], pattern(member, 2, 0));
    }
    world.barrier(soon());  // nobody leaves while others still receive
  });
}

}  // namespace
}  // namespace ganymede::collectives
