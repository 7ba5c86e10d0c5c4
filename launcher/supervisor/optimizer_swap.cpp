#include "launcher/supervisor/optimizer_swap.h"

#include <algorithm>
#include <filesystem>

#include "common/base/error.h"
#include "common/base/log.h"
#include "common/base/text.h"
#include "common/os/files.h"
#include "launcher/supervisor/memory_estimate.h"
#include "launcher/supervisor/segment_memory.h"
#include "launcher/supervisor/swap_config.h"

namespace ganymede::launcher {
namespace {

constexpr std::uint64_t steps_to_offer = 2;
constexpr std::size_t holders_told = 4;

/// One that was refused a moment ago may have had the same, which are gone with it.
void require_copies(const std::vector<service::JobPlugin>& plugins) {
  for (const service::JobPlugin& one : plugins)
    if (!std::filesystem::exists(one.file))
      fail("{}, the copy of optimizer plugin '{}', is not there any more: give the command again.", one.file,
           one.facts.name);
}

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

OptimizerSwap::OptimizerSwap(SwapParts parts)
    : parts_(std::move(parts)), crew_({parts_.job.id, parts_.cells, parts_.crew, parts_.epochs, parts_.keeper}) {
  if (parts_.epochs.next() != 0) resume();
}

/// The launcher before this one has listed an epoch. Either it was offered, and only the records say what becomes of
/// it; or it was not, or it was refused: then it goes.
void OptimizerSwap::resume() {
  current_.epoch = parts_.epochs.next();
  current_.before = parts_.epochs.config_of(parts_.epochs.first()).optimizer.name;
  current_.after = parts_.epochs.config_of(current_.epoch).optimizer.name;
  step_protocol::Setting prepared = parts_.cells.prepared_change();
  if (prepared.state_epoch != current_.epoch)
    return refuse(-1, "the launcher was started anew before it was offered, or after it was refused; order it again");
  current_.state = SwapState::warming;
  current_.change = prepared.number;
  current_.warm_steps = prepared.warm_steps;
  stage_ = Stage::warming;
  crew_.go_on(current_.epoch, current_.change);
}

void OptimizerSwap::require_none() {
  if (stage_ == Stage::dropping)
    fail("A swap ({}) is being taken back: give the command again in a moment.", under_way()->describe());
  if (stage_ != Stage::idle) fail("A swap ({}) is under way: wait for its end.", under_way()->describe());
}

/// Until the cells have what is in force prepared again.
bool OptimizerSwap::takes_back() const { return stage_ == Stage::dropping || parts_.changes.restores(); }

SwapReport OptimizerSwap::order(const SwapOrder& order) {
  bool again = !order.from.empty() && order.from == ordered_.from && order.configuration == ordered_.configuration;
  if (again && !order.dry_run) return report(current_.epoch);
  if (takes_back()) {
    SwapReport not_yet;
    not_yet.state = SwapState::refused;
    return not_yet;
  }
  try {
    return take(order);
  } catch (const Error&) {
    if (!order.dry_run) parts_.epochs.forget(order.plugins);
    throw;
  }
}

SwapReport OptimizerSwap::take(const SwapOrder& order) {
  require_none();
  parts_.changes.require_none_under_way();
  if (order.base != parts_.changes.configuration_hash())
    fail("The run's values have changed since this swap was planned: give the command again.");
  const config::Config& before = parts_.epochs.config_of(parts_.epochs.first());
  config::Config config = config_of_text(order.configuration, fmt::format("{}/swap.toml", service::log_folder));
  if (std::string key = other_difference(before, config); !key.empty())
    fail_usage("Key '{}' is not what the run has: a swap changes the keys of [optimizer] alone.", key);
  SwapReport report = judge(config, order);
  report.before = before.optimizer.name;
  report.after = config.optimizer.name;
  if (order.dry_run) return report;
  if (!report.reason.empty()) fail("The swap to '{}' is refused: {}", report.after, report.reason);
  require_copies(order.plugins);
  current_ = report;
  ordered_ = order;
  begin(order);
  return current_;
}

/// When it would be in force, and whether the memory is there.
SwapReport OptimizerSwap::judge(const config::Config& config, const SwapOrder& order) {
  SwapReport report;
  report.warm_steps = order.warm_steps;
  report.from_step = parts_.cells.decided_step() + steps_to_offer + order.warm_steps;
  if (report.from_step > parts_.steps)
    fail_usage(
        "The swap would be in force from step {} on, after {} updates that it follows, but the run has {} steps: fewer "
        "with --set swap.warm_steps=N, or more steps.",
        report.from_step, order.warm_steps, parts_.steps);
  os::Machine machine = parts_.machine();
  const auto& ranks = parts_.cells.ranks();
  HostBudget budget = estimate_epoch_memory(config, {1, "", order.plugins}, ranks, parts_.budget, machine);
  place_on_nodes(budget, nodes_of_cells(config, ranks.count, machine), os::memory_of_nodes());
  report.cells = ranks.count;
  report.needed_per_cell = budget.needed_per_cell();
  report.available = budget.available;
  report.reason = why_no_swap_fits(budget, [] { return os::largest_memory_holders(holders_told); });
  return report;
}

void OptimizerSwap::begin(const SwapOrder& order) {
  current_.state = SwapState::preparing;
  current_.epoch = parts_.epochs.add(order.configuration, order.plugins);
  log::info("a swap to '{}' was ordered: state epoch {}, {} updates to follow, {} a cell", current_.after,
            current_.epoch, current_.warm_steps, human_bytes(static_cast<double>(current_.needed_per_cell)));
  stage_ = Stage::preparing;
  crew_.begin(current_.epoch);
}

std::optional<coordinator::EpochOrder> OptimizerSwap::wish() const {
  if (stage_ != Stage::preparing && stage_ != Stage::warming) return std::nullopt;
  service::JobEpoch epoch = parts_.epochs.of(current_.epoch);
  return coordinator::EpochOrder{epoch.number, os::read_file(epoch.config), epoch.plugins};
}

SwapReport OptimizerSwap::report(std::uint64_t epoch) {
  if (stage_ != Stage::idle && epoch == current_.epoch) return *under_way();
  if (auto known = done_.find(epoch); known != done_.end()) return known->second;
  if (epoch == 0 || epoch != parts_.epochs.first())
    fail("There was no swap to state epoch {} since this launcher began.", epoch);
  SwapReport report;
  report.epoch = epoch;
  report.state = SwapState::in_force;
  report.after = parts_.epochs.config_of(epoch).optimizer.name;
  step_protocol::InForce newest = parts_.cells.change_in_force();
  auto before = newest.number > 0 ? parts_.cells.change(newest.number - 1) : std::nullopt;
  if (before && before->state_epoch != epoch) report.from_step = newest.since_step;
  return report;
}

std::optional<SwapReport> OptimizerSwap::under_way() {
  if (stage_ == Stage::idle) return std::nullopt;
  SwapReport report = current_;
  const auto* record = parts_.cells.record_of(parts_.cells.decided_step());
  if (report.state == SwapState::warming && record && record->swap_change == report.change && report.change != 0)
    report.warmed = record->updates - record->swap_updates;
  return report;
}

void OptimizerSwap::watch(double now) {
  crew_.watch(now);
  switch (stage_) {
    case Stage::idle:
      return;
    case Stage::preparing:
      return prepare();
    case Stage::warming:
      return follow_records();
    case Stage::dropping:
      return finish_refusal();
  }
}

bool OptimizerSwap::all_nodes(coordinator::EpochStage stage) const {
  auto has = [&](const std::optional<coordinator::EpochProgress>& one) {
    return one && one->epoch == current_.epoch && one->stage == stage;
  };
  if (!has(crew_.progress())) return false;
  return !parts_.others || std::ranges::all_of(parts_.others(), has);
}

std::optional<EpochCrew::Refusal> OptimizerSwap::refusal_elsewhere() const {
  if (!parts_.others) return std::nullopt;
  for (const auto& one : parts_.others())
    if (one && one->epoch == current_.epoch && !one->reason.empty()) return EpochCrew::Refusal{one->rank, one->reason};
  return std::nullopt;
}

/// Until every standby of the world can follow: then it is offered.
void OptimizerSwap::prepare() {
  auto own = crew_.progress();
  if (own && own->stage == coordinator::EpochStage::failed) return refuse(own->rank, own->reason);
  if (auto other = refusal_elsewhere()) return refuse(other->rank, other->reason);
  if (!all_nodes(coordinator::EpochStage::ready)) return;
  try {
    current_.change = parts_.changes.prepare_swap(current_.epoch, current_.warm_steps);
  } catch (const Error& error) {
    return refuse(-1, error.what());
  }
  current_.state = SwapState::warming;
  stage_ = Stage::warming;
  crew_.offered(current_.change);
}

void OptimizerSwap::follow_records() {
  if (all_nodes(coordinator::EpochStage::past)) return finish();
  const auto* record = parts_.cells.record_of(parts_.cells.decided_step());
  if (!record || record->refused_change < current_.change) return;
  auto refusal = crew_.refusal(current_.change);
  if (!refusal) refusal = refusal_elsewhere();
  parts_.changes.prepare_again(current_.change);
  refuse(refusal ? refusal->rank : -1, refusal ? refusal->reason : "a standby optimizer server did not keep up");
}

void OptimizerSwap::finish() {
  crew_.settle();
  step_protocol::InForce newest = parts_.cells.change_in_force();
  current_.from_step = newest.number == current_.change ? newest.since_step : 0;
  current_.state = SwapState::in_force;
  current_.warmed = current_.warm_steps;
  done_[current_.epoch] = current_;
  stage_ = Stage::idle;
}

/// From now on nothing of it is in any step.
void OptimizerSwap::refuse(int rank, const std::string& reason) {
  current_.state = SwapState::refused;
  current_.rank = rank;
  current_.reason = reason;
  std::string line = fmt::format("the swap {}; {} goes on", current_.describe(), current_.before);
  log::warn("{}", line);
  parts_.terminal.line(line);
  stage_ = Stage::dropping;
}

/// Other nodes take theirs back as well, because nobody wishes it any more.
void OptimizerSwap::finish_refusal() {
  bool gone = !parts_.others || std::ranges::none_of(parts_.others(), [](const auto& one) { return one.has_value(); });
  if (!crew_.drop() || !gone) return;
  done_[current_.epoch] = current_;
  stage_ = Stage::idle;
}

}  // namespace ganymede::launcher
