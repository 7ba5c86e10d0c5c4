#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "tests/conformance/collectives/world.h"

/// Bandwidth of the backends on one node, each measured in turns with the other.
namespace ganymede::collectives {
namespace {

struct Size {
  int ranks = 2;
  std::size_t bytes = 16u << 20;  // that a rank receives from its peers, together
  int rounds = 25;                // of a turn
  int turns = 3;
};

using Seconds = std::vector<double>;

Seconds time_all_gather(Member& member, Communicator& world, const Size& size) {
  std::size_t part = size.bytes / static_cast<std::size_t>(size.ranks - 1);
  std::vector<std::size_t> offsets = boundaries(std::vector<std::size_t>(static_cast<std::size_t>(size.ranks), part));
  auto all = member.memory<std::byte>(offsets.back());
  Bytes mine = all.subspan(offsets[static_cast<std::size_t>(member.rank())], part);  // in place: no copy is needed
  Seconds seconds;
  for (int round = 0; round < size.rounds; ++round) {
    world.barrier(soon());
    auto began = Clock::now();
    world.all_gather(mine, all, offsets)->wait(soon());
    seconds.push_back(seconds_since(began));
  }
  return seconds;
}

Seconds time_all_to_all(Member& member, Communicator& world, const Size& size) {
  std::vector<std::size_t> parts(static_cast<std::size_t>(size.ranks),
                                 size.bytes / static_cast<std::size_t>(size.ranks - 1));
  parts[static_cast<std::size_t>(member.rank())] = 0;  // what stays is no communication
  std::vector<std::size_t> offsets = boundaries(parts);
  auto send = member.memory<std::byte>(offsets.back()), receive = member.memory<std::byte>(offsets.back());
  Seconds seconds;
  for (int round = 0; round < size.rounds; ++round) {
    world.barrier(soon());
    auto began = Clock::now();
    world.all_to_all(send, offsets, receive, offsets)->wait(soon());
    seconds.push_back(seconds_since(began));
  }
  return seconds;
}

/// The plain copy of as many bytes in every rank at once: what the machine's memory allows.
Seconds time_copy(Member& member, Communicator& world, const Size& size) {
  auto from = member.memory<std::byte>(size.bytes), to = member.memory<std::byte>(size.bytes);
  Seconds seconds;
  for (int round = 0; round < size.rounds; ++round) {
    world.barrier(soon());
    auto began = Clock::now();
    std::memcpy(to.data(), from.data(), size.bytes);
    world.barrier(soon());
    seconds.push_back(seconds_since(began));
  }
  return seconds;
}

using Timer = Seconds (*)(Member&, Communicator&, const Size&);

/// GB/s of the best round of rank 0: what else runs on the machine only makes rounds slower.
double bandwidth(const Setting& setting, const Size& size, Timer timer) {
  Seconds seconds;
  run_world(setting, size.ranks, [&](Member& member, Communicator& world) {
    Seconds own = timer(member, world, size);
    if (member.rank() == 0) seconds = own;
  });
  return static_cast<double>(size.bytes) / *std::min_element(seconds.begin(), seconds.end()) * 1e-9;
}

/// GB/s; the best of several turns of each, because what disturbs a turn only makes it slower.
struct Result {
  double shm = 0, gloo = 0;
};

std::string compare(const Size& size) {
  Setting shm{.name = "shm", .worlds = {size.ranks}, .backend = Backend::shm};
  Setting gloo{.name = "gloo", .worlds = {size.ranks}, .backend = Backend::gloo, .port = true};
  Result gathered, moved;
  double copied = 0;
  auto keep = [&](double& best, const Setting& setting, Timer timer) {
    best = std::max(best, bandwidth(setting, size, timer));
  };
  for (int turn = 0; turn < size.turns; ++turn) {
    keep(gathered.shm, shm, time_all_gather);
    keep(gathered.gloo, gloo, time_all_gather);
    keep(moved.shm, shm, time_all_to_all);
    keep(moved.gloo, gloo, time_all_to_all);
    keep(copied, shm, time_copy);
  }
  auto text = [](const Result& result) {
    return fmt::format("{{\"shm\": {:.2f}, \"gloo\": {:.2f}, \"ratio\": {:.1f}}}", result.shm, result.gloo,
                       result.shm / result.gloo);
  };
  return fmt::format("{{\"ranks\": {}, \"bytes\": {}, \"all_gather\": {}, \"all_to_all\": {}, \"copy\": {:.2f}}}",
                     size.ranks, size.bytes, text(gathered), text(moved), copied);
}

Size size_of(int argc, char** argv) {
  Size size;
  if (argc > 1) size.ranks = std::atoi(argv[1]);
  std::size_t mebibytes = argc > 2 ? static_cast<std::size_t>(std::atoi(argv[2])) : 16;
  if (argc > 3) size.turns = std::atoi(argv[3]);
  size.bytes = mebibytes << 20;
  bool fits = size.ranks >= 2 && size.ranks <= 8 && mebibytes >= 1 && mebibytes <= 16 && size.turns >= 1;
  if (argc > 4 || !fits) fail_usage("perf_collectives [RANKS 2 to 8] [MEBIBYTES 1 to 16] [TURNS]");
  return size;
}

}  // namespace
}  // namespace ganymede::collectives

int main(int argc, char** argv) {
  using namespace ganymede::collectives;
  try {
    fmt::print("{}\n", compare(size_of(argc, argv)));
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "perf_collectives: {}\n", error.what());
    return 1;
  }
}
