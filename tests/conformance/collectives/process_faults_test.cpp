#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <optional>
#include <thread>

#include "common/base/error.h"
#include "tests/conformance/collectives/processes.h"

namespace ganymede::collectives {
namespace {

class ProcessFaults : public testing::TestWithParam<Setting> {};

std::vector<Setting> of_processes() {
  std::vector<Setting> all = connected();
  std::erase_if(all, [](const Setting& setting) { return setting.plain; });
  return all;
}
INSTANTIATE_TEST_SUITE_P(Backends, ProcessFaults, testing::ValuesIn(of_processes()),
                         [](const auto& given) { return given.param.name; });

constexpr int ranks = 3;
constexpr double patience_seconds = 50;  // of this test, on a machine that has much else to do
constexpr double far_seconds = 600;      // deadline of waits that must not need it
constexpr std::size_t each = 300000;

/// An all_to_all and an all_gather with everything checked; throws CollectiveError when a peer is lost.
void round(Member& member, Communicator& world, Deadline deadline) {
  member.reuse_memory();
  std::vector<std::size_t> offsets = boundaries(std::vector<std::size_t>(ranks, each));
  auto mine = member.memory<std::byte>(each), all = member.memory<std::byte>(offsets.back());
  auto send = member.memory<std::byte>(offsets.back());
  std::fill(mine.begin(), mine.end(), pattern(member.rank(), 0, 0));
  for (int to = 0; to < ranks; ++to) std::fill_n(&send[offsets[to]], each, pattern(member.rank(), to, 0));
  world.all_gather(mine, all, offsets)->wait(deadline);
  for (int from = 0; from < ranks; ++from) GANYMEDE_CHECK(all[offsets[from]] == pattern(from, 0, 0), "wrong bytes");
  world.all_to_all(send, offsets, all, offsets)->wait(deadline);
  for (int from = 0; from < ranks; ++from) {
    GANYMEDE_CHECK(all[offsets[from + 1] - 1] == pattern(from, member.rank(), 0), "wrong bytes");
  }
}

/// Ends the waits of a communicator once the parent says that a rank has died, as the engine's generation watch does.
class GenerationWatch {
 public:
  GenerationWatch(Store& store, Communicator& world)
      : thread_([this, &store, &world] {
          while (!ending_) {
            try {
              store.get("a rank has died", Deadline::after_seconds(0.02));
              return world.abort();
            } catch (const CollectiveError&) {
            }
          }
        }) {}
  ~GenerationWatch() {
    ending_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> ending_{false};
  std::thread thread_;
};

/// Rounds until a peer is lost; exactly then it returns. Shared memory notices that by itself. Gloo forgets messages
/// that are half transferred when their connection breaks: there the watch is needed.
void rounds_until_loss(Member& member, bool watched) {
  auto world = member.form("first generation", patience_seconds);
  std::optional<GenerationWatch> watch;
  if (watched) watch.emplace(member.store(), *world);
  bool lost = false;
  while (!lost) {
    try {
      round(member, *world, Deadline::after_seconds(far_seconds));
      member.store().set("under way", {});
    } catch (const CollectiveError&) {
      lost = true;
    }
  }
}

void second_generation(Member& member) {
  auto world = member.form("second generation", patience_seconds);
  for (int i = 0; i < 3; ++i) round(member, *world, Deadline::after_seconds(patience_seconds));
}

TEST_P(ProcessFaults, AKilledPeerIsNoticedLongBeforeTheDeadlineAndTheNextGenerationWorks) {
  Processes processes(GetParam(), ranks);
  bool gloo = GetParam().backend == Backend::gloo || GetParam().ranks_per_node > 0;
  for (int rank = 0; rank < ranks; ++rank) {
    processes.start(rank, [gloo](Member& member) {
      rounds_until_loss(member, gloo);
      second_generation(member);
    });
  }
  processes.store().get("under way", soon());
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  processes.kill(1);
  EXPECT_EQ(processes.ending(1, soon()), -SIGKILL);
  processes.store().set("a rank has died", {});
  processes.start(1, second_generation);
  // Who comes back before the deadline of its waits has noticed the death.
  Deadline patience = Deadline::after_seconds(patience_seconds);
  for (int rank = 0; rank < ranks; ++rank) EXPECT_EQ(processes.ending(rank, patience), 0) << "rank " << rank;
}

TEST_P(ProcessFaults, AStoppedPeerIsGivenUpAtTheDeadline) {
  Processes processes(GetParam(), ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    processes.start(rank, [](Member& member) {
      auto world = member.form("world");
      round(member, *world, soon());
      if (member.rank() == 2) ::raise(SIGSTOP);
      try {
        while (true) round(member, *world, Deadline::after_seconds(0.15));
      } catch (const CollectiveError&) {
      }
    });
  }
  for (int rank = 0; rank < 2; ++rank) EXPECT_EQ(processes.ending(rank, soon()), 0) << "rank " << rank;
}

}  // namespace
}  // namespace ganymede::collectives
