#include "launcher/supervisor/optimizer_swap.h"

#include <algorithm>

#include "common/base/error.h"
#include "common/base/log.h"
#include "common/base/text.h"
#include "launcher/supervisor/memory_estimate.h"
#include "launcher/supervisor/segment_memory.h"
#include "launcher/supervisor/swap_config.h"

namespace ganymede::launcher {
namespace {

constexpr std::uint64_t steps_to_offer = 2;
constexpr std::size_t holders_told = 4;

}  // namespace

std::string SwapReport::describe() const {
  std::string text = fmt::format("{} → {}", before, after);
  switch (state) {
    case SwapState::none:
      return text;
    case SwapState::preparing:
      return text + ", being prepared";
    case SwapState::warming:
      return fmt::format("{}, {} of {} updates followed", text, warmed, warm_steps);
    case SwapState::in_force:
      return from_step == 0 ? text : fmt::format("from step {} on: optimizer {}", from_step, text);
    case SwapState::refused:
      return rank < 0 ? fmt::format("{} was refused: {}", text, reason)
                      : fmt::format("{} was refused by rank {}: {}", text, rank, reason);
  }
  return text;
}

OptimizerSwap::OptimizerSwap(SwapParts parts) : parts_(std::move(parts)) {
  if (parts_.epochs.next() != 0) return resume();
  EpochSegments::drop_all_but(parts_.keeper, {parts_.epochs.first()});
}

/// The launcher before this one has listed an epoch. Either it was offered, and only the records say what becomes of
/// it; or it was not, or it was refused: then it goes.
void OptimizerSwap::resume() {
  current_ = {};
  current_.epoch = parts_.epochs.next();
  current_.before = parts_.epochs.config_of(parts_.epochs.first()).optimizer.name;
  current_.after = parts_.epochs.config_of(current_.epoch).optimizer.name;
  step_protocol::Setting prepared = parts_.cells.prepared_change();
  if (prepared.state_epoch == current_.epoch) {
    current_.state = SwapState::warming;
    current_.change = prepared.number;
    current_.warm_steps = prepared.warm_steps;
    offered_before_ = true;
    return place();
  }
  refuse(-1, "the launcher was started anew before the change was offered, or after it was refused; order it again");
}

void OptimizerSwap::require_none() {
  if (stage_ != Stage::idle) fail("A swap ({}) is under way: wait for its end.", under_way()->describe());
}

SwapReport OptimizerSwap::order(const SwapOrder& order) {
  require_none();
  parts_.changes.require_none_under_way();
  const config::Config& before = parts_.epochs.config_of(parts_.epochs.first());
  config::Config config = config_of_text(order.configuration, fmt::format("{}/swap.toml", service::log_folder));
  if (std::string key = other_difference(before, config); !key.empty())
    fail_usage("Key '{}' is not what the run has: a swap changes the keys of [optimizer] alone.", key);
  SwapReport report;
  report.before = before.optimizer.name;
  report.after = config.optimizer.name;
  report.warm_steps = order.warm_steps;
  report.from_step = parts_.cells.decided_step() + steps_to_offer + order.warm_steps;
  if (report.from_step > parts_.steps)
    fail_usage(
        "The swap would be in force from step {} on, after {} updates that it follows, but the run has {} steps: fewer "
        "with --set swap.warm_steps=N, or more steps.",
        report.from_step, order.warm_steps, parts_.steps);
  os::Machine machine = os::inspect_machine();
  const auto& ranks = parts_.cells.ranks();
  HostBudget budget = estimate_epoch_memory(config, {1, "", order.plugins}, ranks, parts_.budget, machine);
  place_on_nodes(budget, nodes_of_cells(config, ranks.count, machine), os::memory_of_nodes());
  report.cells = ranks.count;
  report.needed_per_cell = budget.needed_per_cell();
  report.available = budget.available;
  report.reason = why_no_swap_fits(budget, [] { return os::largest_memory_holders(holders_told); });
  if (order.dry_run) return report;
  if (!report.reason.empty()) fail("The swap to '{}' is refused: {}", report.after, report.reason);
  current_ = report;
  begin(config, order);
  return current_;
}

void OptimizerSwap::begin(const config::Config& config, const SwapOrder& order) {
  current_.state = SwapState::preparing;
  current_.epoch = parts_.epochs.add(order.configuration, order.plugins);
  offered_before_ = false;
  deaths_.clear();
  words_.clear();
  log::info("a swap to '{}' was ordered: state epoch {}, {} updates to follow, {} a cell", config.optimizer.name,
            current_.epoch, current_.warm_steps, human_bytes(static_cast<double>(current_.needed_per_cell)));
  place();
}

void OptimizerSwap::place() {
  segments_ = std::make_unique<EpochSegments>(EpochSegments::Plan{.config = parts_.epochs.config_of(current_.epoch),
                                                                  .epoch = parts_.epochs.of(current_.epoch),
                                                                  .job = parts_.job.id,
                                                                  .ranks = parts_.cells.ranks(),
                                                                  .keeper = parts_.keeper});
  stage_ = Stage::placing;
}

SwapReport OptimizerSwap::report(std::uint64_t epoch) {
  if (stage_ != Stage::idle && epoch == current_.epoch) return *under_way();
  if (auto known = done_.find(epoch); known != done_.end()) return known->second;
  if (epoch != 0 && epoch == parts_.epochs.first()) {
    SwapReport report;
    report.epoch = epoch;
    report.state = SwapState::in_force;
    report.after = parts_.epochs.config_of(epoch).optimizer.name;
    step_protocol::InForce newest = parts_.cells.change_in_force();
    auto before = newest.number > 0 ? parts_.cells.change(newest.number - 1) : std::nullopt;
    if (before && before->state_epoch != epoch) report.from_step = newest.since_step;
    return report;
  }
  fail("There was no swap to state epoch {} since this launcher began.", epoch);
}

std::optional<SwapReport> OptimizerSwap::under_way() {
  if (stage_ == Stage::idle) return std::nullopt;
  SwapReport report = current_;
  const auto* record = parts_.cells.record_of(parts_.cells.decided_step());
  if (report.state == SwapState::warming && record && record->swap_change == report.change && report.change != 0)
    report.warmed = record->updates - record->swap_updates;
  return report;
}

bool OptimizerSwap::all_cells(bool (OptimizerSwap::*holds)(int rank)) {
  const auto& ranks = parts_.cells.ranks();
  for (int rank = ranks.first; rank < ranks.first + ranks.count; ++rank)
    if (!(this->*holds)(rank)) return false;
  return true;
}

void OptimizerSwap::say(const std::string& line) {
  log::info("{}", line);
  parts_.terminal.line(line);
}

}  // namespace ganymede::launcher
