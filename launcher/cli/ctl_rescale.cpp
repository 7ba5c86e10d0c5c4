#include "launcher/cli/ctl_rescale.h"

#include <fmt/format.h>

#include <chrono>
#include <optional>
#include <set>
#include <thread>

#include "common/base/deadline.h"
#include "common/base/error.h"
#include "common/base/text.h"
#include "launcher/cli/ask_launcher.h"
#include "launcher/cli/run_access.h"

namespace ganymede::cli {
namespace {

using flatbuffers::FlatBufferBuilder;
using msg::Message;

constexpr auto look_every = std::chrono::milliseconds(100);

struct Seen {
  std::string state;
  std::size_t ranks = 0, nodes = 0;
  std::uint64_t step = 0, generation = 0;
  std::uint64_t job = 0;  // each world has its own
};

Seen look() {
  Message reply = ask_status();
  const auto& status = *reply.as<fbs::Status>();
  Seen seen{.state = status.state()->str(),
            .ranks = status.cells()->size(),
            .step = status.step(),
            .job = reply.envelope().job()};
  std::set<int> nodes;
  for (const auto* cell : *status.cells()) nodes.insert(cell->node());
  seen.nodes = nodes.size();
  return seen;
}

/// Nothing: no launcher answers for a moment.
std::optional<Seen> look_while_it_runs() {
  try {
    return look();
  } catch (const Error&) {
    if (run_is_alive()) return std::nullopt;
    fail_ended();
  }
}

Seen await(const Seen& before, double seconds) {
  Deadline deadline = Deadline::after_seconds(seconds);
  while (true) {
    std::this_thread::sleep_for(look_every);
    auto seen = look_while_it_runs();
    bool formed = seen && seen->job != 0 && seen->job != before.job;
    if (formed && seen->state == "training" && seen->step >= before.step) return *seen;
    if (deadline.passed())
      fail(
          "The world was ordered to form again, but does not train after {}: see `ganymede ctl RUN status` and the log "
          "of "
          "the launcher, or wait longer with --wait.",
          human_seconds(seconds));
  }
}

std::string describe(const Seen& seen) {
  return fmt::format("{} {} on {} {}", seen.ranks, seen.ranks == 1 ? "rank" : "ranks", seen.nodes,
                     seen.nodes == 1 ? "node" : "nodes");
}

}  // namespace

void rescale(const RescaleWish& wish) {
  require_alive(wish.run);
  auto began = Clock::now();
  Seen before = look();
  ask([&](FlatBufferBuilder& builder) {
    auto without = builder.CreateVector(wish.world.without);
    return Message::body(fbs::CreateRescaleRequest(builder, wish.world.ranks, wish.world.expert_group,
                                                   wish.world.replicas, without, wish.now));
  });
  if (wish.seconds == 0) {
    fmt::print("the world is about to form again\n");
    return;
  }
  Seen after = await(before, wish.seconds);
  fmt::print("{} → {}, the run trains at step {}, after {}\n", describe(before), describe(after), after.step,
             human_seconds(seconds_since(began)));
}

}  // namespace ganymede::cli
