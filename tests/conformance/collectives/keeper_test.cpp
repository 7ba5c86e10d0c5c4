#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>

#include <atomic>
#include <filesystem>

#include "common/base/error.h"
#include "common/cell/exchange_layout.h"
#include "common/collectives/shm/keeper_memory.h"
#include "launcher/keeper/segment_server.h"
#include "tests/conformance/collectives/world.h"

namespace ganymede::collectives {
namespace {

constexpr std::uint64_t job = 77;

/// A keeper's socket, served by a thread.
class SharedSegments : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/collectives.XXXXXX";
    folder_ = ::mkdtemp(name);
    socket_ = folder_ + "/keeper.sock";
    server_ = std::make_unique<keeper::SegmentServer>(socket_, store_);
    thread_ = std::thread([this] {
      while (!ending_) {
        pollfd ready{server_->fd(), POLLIN, 0};
        if (::poll(&ready, 1, 10) > 0) server_->serve();
      }
    });
  }
  void TearDown() override {
    ending_ = true;
    thread_.join();
    server_.reset();
    std::filesystem::remove_all(folder_);
  }

  shm::Segment create(int rank, const shm::Layout& layout, std::uint64_t of_job = job) {
    os::Fd fd = shm::KeeperClient(socket_).create(shm::held_name(rank, layout.name), layout.size, soon());
    return shm::Segment::create(fd.get(), layout, of_job);
  }

  std::string folder_, socket_;
  keeper::SegmentStore store_{1u << 30};
  std::unique_ptr<keeper::SegmentServer> server_;
  std::atomic<bool> ending_{false};
  std::thread thread_;
};

shm::Layout working_layout(std::int64_t bytes) {
  return shm::lay_out("working", {{"values", shm::ElementType::u8, {bytes}, 0}});
}

TEST_F(SharedSegments, CarryAGatherFromTheWorkingCopiesIntoThePools) {
  auto store = std::make_shared<MemoryStore>();
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    ranks.emplace_back([&, rank] {
      std::size_t bytes = 1000 + 1000 * static_cast<std::size_t>(rank);
      shm::Segment working = create(rank, working_layout(static_cast<std::int64_t>(bytes)));
      shm::Segment exchange = create(rank, shm::exchange_layout()), pool = create(rank, shm::pool_layout(3000, 0));
      auto mine = working.span<std::byte>("values"), all = pool.span<std::byte>("pool");
      std::fill(mine.begin(), mine.end(), pattern(rank, 0, 0));
      auto peers = std::make_shared<KeeperMemory>(shm::KeeperClient(socket_),
                                                  std::vector<std::string>{"working", "exchange", "pool.0"}, job);
      Port port({.rank = rank,
                 .regions = {{"working", working.base(), working.layout().size},
                             {"exchange", exchange.base(), exchange.layout().size},
                             {"pool.0", pool.base(), pool.layout().size}},
                 .channels_region = 1,
                 .channels_memory = exchange.span<std::byte>("channels"),
                 .channels = shm::collective_channels,
                 .peers = peers});
      auto world = make_communicator({"world", {0, 1}, rank, 20, {}}, {Backend::automatic, 0, &port, store});
      world->all_gather(mine, all, std::vector<std::size_t>{0, 1000, 3000})->wait(soon());
      EXPECT_EQ(all[999], pattern(0, 0, 0));
      EXPECT_EQ(all[1000], pattern(1, 0, 0));
      EXPECT_EQ(all[2999], pattern(1, 0, 0));
    });
  }
  for (std::thread& rank : ranks) rank.join();
}

TEST_F(SharedSegments, OfAnotherJobOrThatDoNotExistAreRefused) {
  shm::Segment working = create(0, working_layout(100), job + 1);
  KeeperMemory memory(shm::KeeperClient(socket_), {"working", "exchange"}, job);
  EXPECT_THROW(memory.map(0, 0), Error);
  EXPECT_THROW(memory.map(0, 1), Error);
  EXPECT_THROW(memory.map(0, 2), Error);
}

}  // namespace
}  // namespace ganymede::collectives
