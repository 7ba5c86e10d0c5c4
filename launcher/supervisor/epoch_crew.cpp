#include "launcher/supervisor/epoch_crew.h"

#include <signal.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "common/base/log.h"
#include "common/base/text.h"
#include "launcher/supervisor/memory_estimate.h"

namespace ganymede::launcher {
namespace {

constexpr double ready_seconds = 60;  // for a standby to load its plugins and map its segments

}  // namespace

EpochCrew::EpochCrew(EpochCrewParts parts) : parts_(std::move(parts)) {
  if (parts_.epochs.next() == 0) EpochSegments::drop_all_but(parts_.keeper, {parts_.epochs.first()});
}

std::vector<int> EpochCrew::ranks() const {
  std::vector<int> all(static_cast<std::size_t>(parts_.cells.count()));
  std::iota(all.begin(), all.end(), parts_.cells.ranks().first);
  return all;
}

double EpochCrew::bytes_of(std::uint64_t epoch) {
  return static_cast<double>(
      epoch_bytes(parts_.epochs.config_of(epoch), parts_.epochs.of(epoch), parts_.cells.ranks()));
}

void EpochCrew::begin(std::uint64_t epoch, std::function<void()> prepare) {
  change_ = 0;
  place(epoch, std::move(prepare));
}

void EpochCrew::go_on(std::uint64_t epoch, std::uint64_t change) {
  change_ = change;
  place(epoch, {});
}

void EpochCrew::place(std::uint64_t epoch, std::function<void()> prepare) {
  epoch_ = epoch;
  deaths_.clear();
  words_.clear();
  refusal_ = {};
  counted_ = false;
  segments_ = std::make_unique<EpochSegments>(EpochSegments::Plan{.config = parts_.epochs.config_of(epoch),
                                                                  .epoch = parts_.epochs.of(epoch),
                                                                  .job = parts_.job,
                                                                  .ranks = parts_.cells.ranks(),
                                                                  .keeper = parts_.keeper,
                                                                  .prepare = std::move(prepare)});
  stage_ = Stage::placing;
}

void EpochCrew::offered(std::uint64_t change) {
  if (stage_ != Stage::ready) return;
  change_ = change;
  stage_ = Stage::offered;
}

std::optional<coordinator::EpochProgress> EpochCrew::progress() const {
  using coordinator::EpochStage;
  coordinator::EpochProgress progress{epoch_, EpochStage::placing, refusal_.rank, refusal_.reason};
  switch (stage_) {
    case Stage::idle:
      return std::nullopt;
    case Stage::placing:
      break;
    case Stage::starting:
      progress.stage = EpochStage::starting;
      break;
    case Stage::ready:
    case Stage::offered:
      progress.stage = EpochStage::ready;
      break;
    case Stage::past:
      progress.stage = EpochStage::past;
      break;
    case Stage::failed:
      progress.stage = EpochStage::failed;
      break;
  }
  if (stage_ == Stage::offered && !words_.empty()) {  // why a cell of this node has refused
    progress.rank = words_.begin()->first;
    progress.reason = words_.begin()->second;
  }
  return progress;
}

void EpochCrew::watch(double now) {
  if (stage_ == Stage::placing) start_standbys(now);
  if (stage_ == Stage::starting) await_standbys(now);
  promote();
  std::vector<int> all = ranks();
  bool past = stage_ == Stage::offered && std::ranges::all_of(all, [&](int rank) { return has_taken_over(rank); });
  if (past && !parts_.crew.any_beside()) stage_ = Stage::past;  // the old servers end by themselves
}

/// Once the segments are there.
void EpochCrew::start_standbys(double now) {
  try {
    if (!segments_->made()) return;
    counted_ = true;
    grown_ += bytes_of(epoch_);
    for (int rank : ranks())
      if (parts_.crew.at(service::Kind::optimizer, rank).id().epoch != epoch_) parts_.crew.start_standby(rank, epoch_);
  } catch (const Error& error) {
    if (change_ == 0) return fail_with(-1, error.what());
    // The offer stands: this node refuses it, and the records say so.
    words_[ranks().front()] = error.what();
    for (int rank : ranks()) parts_.cells.refuse_change(rank, change_);
  }
  deadline_ = now + ready_seconds;
  stage_ = change_ == 0 ? Stage::starting : Stage::offered;
}

void EpochCrew::await_standbys(double now) {
  std::vector<int> all = ranks();
  auto missing = std::ranges::find_if_not(all, [&](int rank) { return segments_->ready(rank); });
  if (missing == all.end()) {
    stage_ = Stage::ready;
  } else if (now > deadline_) {
    fail_with(*missing, fmt::format("{} was not ready within {}", standby_text(), human_seconds(ready_seconds)));
  }
}

/// The standby of a cell whose record names the new epoch is its server from now on.
void EpochCrew::promote() {
  if (stage_ != Stage::offered) return;
  for (int rank : ranks())
    if (has_taken_over(rank) && parts_.crew.at(service::Kind::optimizer, rank).id().epoch != epoch_)
      parts_.crew.promote(rank);
}

void EpochCrew::fail_with(int rank, const std::string& reason) {
  log::warn("state epoch {} cannot be followed: {}", epoch_, reason);
  refusal_ = {rank, reason};
  stage_ = Stage::failed;
}

std::optional<EpochCrew::Refusal> EpochCrew::refusal(std::uint64_t change) {
  for (int rank : ranks()) {
    if (parts_.cells.refused_change(rank) < change) continue;
    auto words = words_.find(rank);
    return Refusal{rank, words != words_.end() ? words->second : slow_words(rank)};
  }
  return std::nullopt;
}

/// Its worker has refused, because it had waited for long.
std::string EpochCrew::slow_words(int rank) {
  const ServiceProcess* standby = parts_.crew.standby_of(rank);
  return fmt::format("{} did not keep up{}", standby_text(),
                     standby && !standby->detail.empty() ? " (" + standby->detail + ")" : "");
}

void EpochCrew::settle() {
  std::uint64_t before = parts_.epochs.first();
  grown_ -= bytes_of(before);
  parts_.epochs.settle(epoch_);
  EpochSegments::drop(parts_.keeper, before);
  segments_.reset();
  log::info("state epoch {} is in force on this node; the segments of epoch {} are given back", epoch_, before);
  stage_ = Stage::idle;
}

bool EpochCrew::drop() {
  parts_.crew.end_standbys("its swap was refused");
  if (parts_.crew.any_beside() || (segments_ && !segments_->give_up())) return false;
  segments_.reset();
  std::uint64_t epoch = parts_.epochs.next();
  if (epoch == 0) return true;
  if (counted_) grown_ -= bytes_of(epoch);
  counted_ = false;
  EpochSegments::drop(parts_.keeper, epoch);
  parts_.epochs.drop(epoch);
  stage_ = Stage::idle;
  return true;
}

bool EpochCrew::fault(int pid, const std::string& text) {
  promote();
  ServiceProcess* standby = parts_.crew.standby_with(pid);
  if (!standby) return false;
  log::warn("{}: {}", standby->id().text(), text);
  words_[standby->id().rank] = text;
  return true;
}

bool EpochCrew::ended(ServiceProcess& process, const os::Ending& ending) {
  promote();
  if (!parts_.crew.is_beside(process)) return false;
  if (parts_.crew.standby_of(process.id().rank) == &process) standby_ended(process, ending);
  return true;
}

std::string EpochCrew::standby_text() const {
  std::string plugins;
  for (const service::JobPlugin& one : parts_.epochs.of(epoch_).plugins)
    plugins += fmt::format("{}{}", plugins.empty() ? "" : ", ", one.file);
  return fmt::format("its standby optimizer server ({})", plugins);
}

std::string EpochCrew::words_of(const ServiceProcess& process, const os::Ending& ending) {
  if (auto words = words_.find(process.id().rank); words != words_.end()) return words->second;
  return fmt::format("{} ended: {}{}; see {}/{}.log", standby_text(), ending.describe(),
                     process.killed_because.empty() ? "" : ", " + process.killed_because, service::log_folder,
                     process.id().stem());
}

/// Then its standby ends by itself.
bool EpochCrew::refusal_is_decided(int rank) {
  const step_protocol::ControlBlock& block = *parts_.cells.control(rank).block;
  std::uint64_t step = block.decided_step.load(std::memory_order_acquire);
  const step_protocol::DecisionRecord& record = block.record_of(step);
  return step > 0 && record.step == step && record.intact() && record.refused_change >= change_;
}

/// Before the offer any end costs the swap. Afterwards a process that was killed comes back once, and goes on where it
/// was; one that ends by itself, or that this launcher has killed because it hangs, would do so again.
void EpochCrew::standby_ended(ServiceProcess& process, const os::Ending& ending) {
  int rank = process.id().rank;
  if (stage_ == Stage::starting || stage_ == Stage::ready) return fail_with(rank, words_of(process, ending));
  if (stage_ != Stage::offered || parts_.cells.refused_change(rank) >= change_) return;
  if (ending.signal == 0 && ending.exit_code == 0 && refusal_is_decided(rank)) return;
  if (ending.signal == SIGKILL && process.killed_because.empty() && ++deaths_[rank] == 1) {
    ++process.restarts;
    log::warn("{} ended: {}; it is started again", process.id().text(), ending.describe());
    return process.start_after(0);
  }
  words_[rank] = words_of(process, ending);
  parts_.cells.refuse_change(rank, change_);
}

}  // namespace ganymede::launcher
