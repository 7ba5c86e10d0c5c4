#include "launcher/cli/ctl_restart.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <thread>
#include <vector>

#include "common/base/deadline.h"
#include "common/base/error.h"
#include "common/base/printable.h"
#include "common/base/text.h"
#include "common/service/service.h"
#include "launcher/cli/ask_launcher.h"
#include "launcher/cli/run_access.h"
#include "launcher/cli/service_copy.h"
#include "launcher/coordinator/node_messages.h"
#include "launcher/supervisor/service_id.h"

namespace ganymede::cli {
namespace {

using flatbuffers::FlatBufferBuilder;
using msg::Message;

constexpr auto look_every = std::chrono::milliseconds(100);

fbs::ServiceKind kind_of(const std::string& service) {
  auto kind = launcher::kind_named(service);
  if (!kind) fail_usage("'{}' is not a service of a cell.", service);
  return static_cast<fbs::ServiceKind>(*kind);
}

/// What is known of one service, and how far the run is.
struct Seen {
  int pid = 0;
  bool works = false;  // it runs, and the run trains
  std::uint64_t step = 0;
  bool ends = false;  // the run does
  std::string binary = {};
  bool trial = false;
  std::string refusal = {};
  std::uint64_t refused = 0;
};

std::string text_of(const flatbuffers::String* text) { return text == nullptr ? "" : text->str(); }

Seen look(fbs::ServiceKind kind, int rank) {
  Message reply = ask_status();
  const auto& status = *reply.as<fbs::Status>();
  std::string state = status.state()->str();
  Seen seen{.step = status.step(), .ends = state == "stopping"};
  for (const auto* cell : *status.cells()) {
    for (const auto* one : *cell->services()) {
      if (cell->rank() != rank || one->service() != kind) continue;
      seen.pid = one->pid();
      seen.works = state == "training" && (one->state()->str() == "running" || one->state()->str() == "waiting");
      seen.binary = text_of(one->binary());
      seen.trial = one->trial();
      seen.refusal = text_of(one->refusal());
      seen.refused = one->refused();
    }
  }
  return seen;
}

/// Of a run without services none is known; the launcher then says why it restarts nothing.
std::vector<int> ranks_of(const RestartWish& wish) {
  if (wish.rank) return {*wish.rank};
  Message reply = ask_status();
  std::vector<int> ranks;
  for (const auto* cell : *reply.as<fbs::Status>()->cells()) ranks.push_back(cell->rank());
  return ranks.empty() ? std::vector{0} : ranks;
}

using Binary = std::optional<coordinator::ServiceBinary>;

void order(fbs::ServiceKind kind, int rank, const Binary& binary) {
  ask([&](FlatBufferBuilder& builder) {
    flatbuffers::Offset<fbs::ServiceBinary> packed = 0;
    if (binary) packed = coordinator::pack(builder, *binary);
    return Message::body(fbs::CreateRestartRequest(builder, kind, rank, packed));
  });
}

/// Nothing: the run has ended.
std::optional<Seen> look_while_it_runs(fbs::ServiceKind kind, int rank) {
  try {
    Seen seen = look(kind, rank);
    return seen.ends ? std::nullopt : std::optional(seen);
  } catch (const Error&) {
    if (run_is_alive()) throw;
    return std::nullopt;
  }
}

/// Waits until the replacement works, its binary has proved itself, and a step was done with it. Nothing: the run ends.
std::optional<Seen> await(fbs::ServiceKind kind, int rank, const Binary& binary, const Seen& before, double seconds) {
  Deadline deadline = Deadline::after_seconds(seconds);
  while (true) {
    std::this_thread::sleep_for(look_every);
    auto seen = look_while_it_runs(kind, rank);
    if (!seen) return std::nullopt;
    if (binary && !seen->refusal.empty() && seen->refused != before.refused) fail("{}", printable(seen->refusal));
    bool replaced = seen->works && seen->pid != before.pid && seen->step > before.step;
    if (replaced && (!binary || (seen->binary == binary->file && !seen->trial))) return seen;
    if (!deadline.passed()) continue;
    fail(
        "The {} of rank {} was ordered to start again, but the run does not train with it after {}: see logs/{}.log "
        "and `ganymede ctl RUN status`, or wait longer with --wait.",
        fbs::EnumNameServiceKind(kind), rank, human_seconds(seconds),
        service::stem(static_cast<service::Kind>(kind), rank));
  }
}

/// False: the run ends, and there is nothing more to do.
bool replace(const RestartWish& wish, fbs::ServiceKind kind, int rank, const Binary& binary) {
  auto began = Clock::now();
  if (wish.seconds == 0) {
    order(kind, rank, binary);
    fmt::print("the {} of rank {} is started again\n", wish.service, rank);
    return true;
  }
  Seen before = look(kind, rank);
  order(kind, rank, binary);
  auto after = await(kind, rank, binary, before, wish.seconds);
  if (!after) {
    fmt::print("the {} of rank {} was ordered to start again; the run ends now\n", wish.service, rank);
    return false;
  }
  std::string with = !binary ? "" : binary->file.empty() ? " with the installed program" : " with " + binary->file;
  fmt::print("the {} of rank {} was started again{}: process {} → {}, the run trains at step {}, after {}\n",
             wish.service, rank, with, before.pid, after->pid, after->step,
             human_seconds(std::chrono::duration<double>(Clock::now() - began).count()));
  std::fflush(stdout);
  return true;
}

}  // namespace

void restart(const RestartWish& wish) {
  std::string path = wish.binary ? std::filesystem::absolute(*wish.binary).lexically_normal().string() : "";
  require_alive(wish.run);
  fbs::ServiceKind kind = kind_of(wish.service);
  std::vector<int> ranks = ranks_of(wish);
  Binary binary;
  if (wish.binary) binary = *wish.binary == "default" ? coordinator::ServiceBinary{} : copy_service(wish.service, path);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    try {
      if (!replace(wish, kind, ranks[i], binary)) return;
    } catch (const Error& error) {
      if (i == 0 || !binary) throw;
      std::string before =
          i == 1 ? fmt::format("Rank {} was", ranks[0]) : fmt::format("Ranks {} to {} were", ranks[0], ranks[i - 1]);
      throw Error(error.code(), fmt::format("{} {} started again before: `--rank R --binary default` takes one back.",
                                            error.what(), before));
    }
  }
}

}  // namespace ganymede::cli
