#include "launcher/cli/ctl_swap.h"

#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "common/base/deadline.h"
#include "common/base/error.h"
#include "common/base/text.h"
#include "launcher/cli/ask_launcher.h"
#include "launcher/cli/swap_plan.h"
#include "launcher/coordinator/node_messages.h"
#include "launcher/supervisor/optimizer_swap.h"
#include "launcher/supervisor/terminal.h"

namespace ganymede::cli {
namespace {

using flatbuffers::FlatBufferBuilder;
using launcher::SwapReport;
using launcher::SwapState;

constexpr auto look_every = std::chrono::milliseconds(100);
constexpr double longest_load = 50;  // seconds; of plugins
constexpr double short_load = 10;    // the same of an order that nobody waits for

SwapReport request(std::uint64_t epoch, const SwapPlan& plan, bool dry_run) {
  msg::Message reply = ask([&](FlatBufferBuilder& builder) {
    auto configuration = builder.CreateString(plan.configuration);
    return msg::Message::body(fbs::CreateSwapRequest(
        builder, epoch, configuration, coordinator::pack(builder, plan.plugins), plan.warm_steps, dry_run, plan.base));
  });
  const auto* receipt = reply.as<fbs::SwapReceipt>();
  if (!receipt) fail("The launcher's answer is not about a swap: are the programs of one build?");
  SwapReport report;
  report.epoch = receipt->epoch();
  report.state = static_cast<SwapState>(receipt->state());
  report.before = receipt->before()->str();
  report.after = receipt->after()->str();
  report.change = receipt->change();
  report.from_step = receipt->from_step();
  report.warm_steps = receipt->warm_steps();
  report.warmed = receipt->warmed();
  report.rank = receipt->rank();
  report.reason = receipt->reason()->str();
  report.cells = receipt->cells();
  report.needed_per_cell = receipt->needed_per_cell();
  report.available = receipt->available();
  return report;
}

std::string bytes(std::uint64_t count) { return human_bytes(static_cast<double>(count)); }

nlohmann::ordered_json as_json(const SwapPlan& plan, const SwapReport& report, const char* state) {
  return {{"before", plan.before},
          {"after", plan.after},
          {"state", state},
          {"epoch", report.epoch},
          {"change", report.change},
          {"from_step", report.from_step},
          {"warm_steps", plan.warm_steps},
          {"parts", parts_json(plan)},
          {"lr", rates_json(plan)},
          {"memory",
           {{"cells", report.cells}, {"needed_per_cell", report.needed_per_cell}, {"available", report.available}}}};
}

std::string memory_line(const SwapReport& report) {
  auto cells = static_cast<std::uint64_t>(report.cells);
  return fmt::format("host memory: {} a cell, {} for the {} {} of this node; {} are free",
                     bytes(report.needed_per_cell), bytes(report.needed_per_cell * cells), cells,
                     cells == 1 ? "cell" : "cells", bytes(report.available));
}

/// What the run answers once nothing of a refused swap is left.
SwapReport order(const SwapWish& wish, const SwapPlan& plan, bool dry_run, const Deadline& deadline) {
  while (true) {
    SwapReport report = request(0, plan, dry_run);
    if (report.state != SwapState::refused || report.epoch != 0) return report;
    if (deadline.passed())
      fail("A swap that was refused is still being taken back after {}: give the command again in a moment.",
           human_seconds(wish.seconds));
    std::this_thread::sleep_for(look_every);
  }
}

/// How long plugins may take to be loaded.
double load_seconds(const SwapWish& wish, const Deadline& deadline) {
  if (wish.seconds == 0) return short_load;
  double left = std::chrono::duration<double>(deadline.left()).count();
  return std::clamp(left, look_every.count() / 1000.0, longest_load);
}

void show_dry_run(const SwapWish& wish, const SwapPlan& plan, const SwapReport& report) {
  bool refused = !report.reason.empty();
  if (wish.json) {
    auto object = as_json(plan, report, refused ? "refused" : "possible");
    if (refused) object["reason"] = report.reason;
    fmt::print("{}\n", object.dump());
    if (refused) throw Error(ExitCode::failed, "");  // it is told
    return;
  }
  fmt::print("{} → {}\n", plan.before, plan.after);
  for (const std::string& line : part_lines(plan)) fmt::print("  {}\n", line);
  fmt::print("{}\n", rates_line(plan));
  fmt::print("{}\n", plan.warm_steps == 0 ? "it takes over at once"
                                          : fmt::format("it follows {} updates before it takes over", plan.warm_steps));
  fmt::print("{}\n", memory_line(report));
  if (refused) fail("The swap to '{}' would be refused: {} Nothing was changed.", plan.after, report.reason);
  fmt::print("ordered now it would be in force from about step {} on\nnothing was changed\n", report.from_step);
}

bool is_under_way(const SwapReport& report) {
  return report.state == SwapState::preparing || report.state == SwapState::warming;
}

void require_mature(const SwapWish& wish, const SwapPlan& plan) {
  if (wish.force || plan.warm_steps > 0 || !starts_empty(plan)) return;
  fail_usage(
      "With swap.warm_steps = 0 the swap from '{}' to '{}' would begin with an empty state ({}), and its first steps "
      "could be far too large: leave swap.warm_steps out, or take --force.",
      plan.before, plan.after, fmt::join(part_lines(plan), "; "));
}

}  // namespace

void swap_optimizer(const SwapWish& wish) {
  require_alive(wish.run);
  Deadline deadline = Deadline::after_seconds(wish.seconds);
  // What cannot be is refused before anything is copied into the run directory.
  SwapPlan plan = plan_swap(wish.name, wish.settings, false, load_seconds(wish, deadline));
  require_mature(wish, plan);
  SwapReport possible = order(wish, plan, true, deadline);
  if (wish.dry_run) return show_dry_run(wish, plan, possible);
  if (!possible.reason.empty()) fail("The swap to '{}' is refused: {}", plan.after, possible.reason);
  plan = plan_swap(wish.name, wish.settings, true, load_seconds(wish, deadline));
  SwapReport report = order(wish, plan, false, deadline), first = report;
  if (wish.seconds == 0 && is_under_way(report)) {
    if (wish.json) return fmt::print("{}\n", as_json(plan, report, "ordered").dump());
    return fmt::print("ordered: {}\n", report.describe());
  }
  launcher::Terminal terminal(wish.json ? -1 : STDOUT_FILENO, !wish.json && isatty(STDOUT_FILENO) != 0);
  while (is_under_way(report)) {
    if (deadline.passed())
      fail("The swap ({}) is not in force after {}: it stays ordered; see `ganymede ctl {} status`.", report.describe(),
           human_seconds(wish.seconds), wish.run);
    terminal.live(report.describe());
    std::this_thread::sleep_for(look_every);
    report = request(first.epoch, {}, false);
  }
  terminal.live("");
  if (report.state == SwapState::refused) fail("The swap {}; '{}' goes on.", report.describe(), report.before);
  first.from_step = report.from_step;
  first.change = report.change;
  if (wish.json) return fmt::print("{}\n", as_json(plan, first, "in_force").dump());
  report.before = plan.before;
  fmt::print("{}\n{}\n", report.describe(), rates_line(plan));
}

}  // namespace ganymede::cli
