#include <signal.h>

#include "common/base/log.h"
#include "common/base/text.h"
#include "launcher/supervisor/memory_estimate.h"
#include "launcher/supervisor/optimizer_swap.h"

/// How a swap that was ordered gets on.
namespace ganymede::launcher {
namespace {

constexpr double ready_seconds = 60;  // for a standby to load its plugins and map its segments

}  // namespace

void OptimizerSwap::watch(double now) {
  switch (stage_) {
    case Stage::idle:
      return;
    case Stage::placing:
      return start_standbys(now);
    case Stage::starting:
      return offer(now);
    case Stage::offered:
      return follow_records();
    case Stage::leaving:
      return settle();
    case Stage::dropping:
      return finish_refusal();
  }
}

/// Once the segments are there.
void OptimizerSwap::start_standbys(double now) {
  try {
    if (!segments_->made()) return;
    grown_ += static_cast<double>(
        epoch_bytes(parts_.epochs.config_of(current_.epoch), parts_.epochs.of(current_.epoch), parts_.cells.ranks()));
    const auto& ranks = parts_.cells.ranks();
    for (int rank = ranks.first; rank < ranks.first + ranks.count; ++rank)
      if (parts_.crew.at(service::Kind::optimizer, rank).id().epoch != current_.epoch)
        parts_.crew.start_standby(rank, current_.epoch);
  } catch (const Error& error) {
    if (!offered_before_) return refuse(-1, error.what());
    // The offer stands: this node refuses it, and the records say so.
    const auto& ranks = parts_.cells.ranks();
    words_[ranks.first] = error.what();
    for (int rank = ranks.first; rank < ranks.first + ranks.count; ++rank)
      parts_.cells.refuse_change(rank, current_.change);
  }
  deadline_ = now + ready_seconds;
  stage_ = offered_before_ ? Stage::offered : Stage::starting;
}

/// Once all of them can follow.
void OptimizerSwap::offer(double now) {
  if (!all_cells(&OptimizerSwap::is_ready)) {
    if (now <= deadline_) return;
    const auto& ranks = parts_.cells.ranks();
    int rank = ranks.first;
    while (is_ready(rank)) ++rank;
    return refuse(rank, fmt::format("its standby optimizer server was not ready within {}", human_seconds(ready_seconds)));
  }
  try {
    current_.change = parts_.changes.prepare_swap(current_.epoch, current_.warm_steps);
  } catch (const Error& error) {
    return refuse(-1, error.what());
  }
  current_.state = SwapState::warming;
  stage_ = Stage::offered;
}

/// The standby of a cell whose record names the new epoch is its server from now on.
void OptimizerSwap::promote() {
  if (stage_ != Stage::offered) return;
  const auto& ranks = parts_.cells.ranks();
  for (int rank = ranks.first; rank < ranks.first + ranks.count; ++rank)
    if (has_taken_over(rank) && parts_.crew.at(service::Kind::optimizer, rank).id().epoch != current_.epoch)
      parts_.crew.promote(rank);
}

void OptimizerSwap::follow_records() {
  promote();
  if (all_cells(&OptimizerSwap::has_taken_over)) {
    stage_ = Stage::leaving;
    return;
  }
  const auto* record = parts_.cells.record_of(parts_.cells.decided_step());
  if (!record || record->refused_change < current_.change) return;
  const auto& ranks = parts_.cells.ranks();
  int refused_by = -1;
  for (int rank = ranks.first; rank < ranks.first + ranks.count; ++rank)
    if (refused_by < 0 && parts_.cells.refused_change(rank) >= current_.change) refused_by = rank;
  auto words = words_.find(refused_by);
  std::string reason = words != words_.end() ? words->second : "its standby optimizer server did not keep up";
  parts_.changes.prepare_again(current_.change);
  refuse(refused_by, reason);
}

/// Every cell is past it. The old servers end by themselves.
void OptimizerSwap::settle() {
  if (parts_.crew.any_beside()) return;
  std::uint64_t before = parts_.epochs.first();
  service::JobEpoch old = parts_.epochs.of(before);
  parts_.epochs.settle(current_.epoch);
  EpochSegments::drop(parts_.keeper, before);
  grown_ -= static_cast<double>(epoch_bytes(parts_.epochs.config_of(before), old, parts_.cells.ranks()));
  segments_.reset();
  step_protocol::InForce newest = parts_.cells.change_in_force();
  current_.from_step = newest.number == current_.change ? newest.since_step : 0;
  current_.state = SwapState::in_force;
  current_.warmed = current_.warm_steps;
  log::info("{}; the segments of state epoch {} are given back", current_.describe(), before);
  done_[current_.epoch] = current_;
  stage_ = Stage::idle;
}

/// From now on nothing of it is in any step.
void OptimizerSwap::refuse(int rank, const std::string& reason) {
  current_.state = SwapState::refused;
  current_.rank = rank;
  current_.reason = reason;
  say(fmt::format("the swap {}; {} goes on", current_.describe(), current_.before));
  stage_ = Stage::dropping;
}

void OptimizerSwap::finish_refusal() {
  parts_.crew.end_standbys("its swap was refused");
  if (parts_.crew.any_beside()) return;
  if (segments_ && !segments_->give_up()) return;
  segments_.reset();
  EpochSegments::drop(parts_.keeper, current_.epoch);
  parts_.epochs.drop(current_.epoch);
  done_[current_.epoch] = current_;
  stage_ = Stage::idle;
}

bool OptimizerSwap::fault(int pid, const std::string& text) {
  promote();
  ServiceProcess* standby = parts_.crew.standby_with(pid);
  if (!standby) return false;
  log::warn("{}: {}", standby->id().text(), text);
  words_[standby->id().rank] = text;
  return true;
}

bool OptimizerSwap::ended(ServiceProcess& process, const os::Ending& ending) {
  promote();
  if (!parts_.crew.is_beside(process)) return false;
  if (parts_.crew.standby_of(process.id().rank) == &process) standby_ended(process, ending);
  return true;
}

std::string OptimizerSwap::words_of(const ServiceProcess& process, const os::Ending& ending) {
  if (auto words = words_.find(process.id().rank); words != words_.end()) return words->second;
  return fmt::format("its standby optimizer server ended: {}{} (logs/{}.log)", ending.describe(),
                     process.killed_because.empty() ? "" : ", " + process.killed_because, process.id().stem());
}

/// Before the offer any end costs the swap. Afterwards a process that was killed comes back once, and goes on where it
/// was; one that ends by itself would do so again.
void OptimizerSwap::standby_ended(ServiceProcess& process, const os::Ending& ending) {
  int rank = process.id().rank;
  if (stage_ == Stage::starting) return refuse(rank, words_of(process, ending));
  if (stage_ != Stage::offered || parts_.cells.refused_change(rank) >= current_.change) return;
  if (ending.signal == SIGKILL && ++deaths_[rank] == 1) {
    ++process.restarts;
    log::warn("{} ended: {}; it is started again", process.id().text(), ending.describe());
    return process.start_after(0);
  }
  words_[rank] = words_of(process, ending);
  parts_.cells.refuse_change(rank, current_.change);
}

}  // namespace ganymede::launcher
