#include "launcher/supervisor/cells.h"

#include <unistd.h>

#include <algorithm>
#include <limits>
#include <set>

#include "common/base/error.h"
#include "common/base/log.h"
#include "common/cell/layouts.h"
#include "common/os/futex.h"
#include "common/service/settings.h"

namespace ganymede::launcher {
namespace {

using step_protocol::never;
using step_protocol::Word;

Deadline soon() { return Deadline::after_seconds(10); }

constexpr const char* control_name = "control";

/// Whether anything was written into a new, zeroed segment yet.
bool has_head(const os::Fd& fd) {
  std::uint64_t magic = 0;
  return pread(fd.get(), &magic, sizeof(magic), 0) == sizeof(magic) && magic != 0;
}

void fill_with_never(std::span<Word> words) {
  for (Word& word : words) word.store(never, std::memory_order_relaxed);
}

/// All other words begin with zero, as the keeper's memory does.
void begin(service::Control& control, const config::Config& config, std::uint64_t load_step) {
  step_protocol::prepare(*control.block, service::setting_of(config));
  fill_with_never(control.working_copy_ready);
  control.block->load_step.store(load_step);
  control.block->decided_step.store(load_step);
}

/// The same of the first state epoch.
void begin_epoch(shm::Segment& state, std::uint64_t load_step, std::uint64_t chunks) {
  service::epoch_control_of(state).words->chunks_done.store(load_step * chunks);
}

NewCell make_cell(const config::Config& config, const service::Job& job, int rank, int local_rank,
                  const shm::KeeperClient& keeper) {
  NewCell cell{.local_rank = local_rank, .segments = {}};
  for (const auto& layout : shm::cell_layouts(config, placement::build(config, rank, job.optimizers()))) {
    os::Fd fd = keeper.create(shm::held_name(rank, layout.name), layout.size, soon());
    cell.segments.push_back(shm::Segment::create(fd.get(), layout, job.id));
  }
  return cell;
}

}  // namespace

Cells Cells::create(const config::Config& config, const service::Job& job, coordinator::RankRange ranks,
                    std::uint64_t load_step, const shm::KeeperClient& keeper, const PlacingProgress& progress) {
  std::vector<NewCell> made;
  for (int i = 0; i < ranks.count; ++i) made.push_back(make_cell(config, job, ranks.first + i, i, keeper));
  place_segments(config, made, progress);
  Cells cells;
  cells.ranks_ = ranks;
  for (int i = 0; i < ranks.count; ++i) {
    auto placement = placement::build(config, ranks.first + i, job.optimizers());
    for (auto& segment : made[static_cast<std::size_t>(i)].segments) {
      if (segment.layout().name == shm::state_name(0)) begin_epoch(segment, load_step, placement.chunks.size());
      if (segment.layout().name == "batches") {
        fill_with_never(segment.span<Word>("words"));
        fill_with_never(segment.span<Word>("validation_words"));
      }
      if (segment.layout().name != control_name) continue;
      service::Control control = service::control_of(segment);
      begin(control, config, load_step);
      cells.cells_.push_back({std::move(segment), control});
    }
  }
  // Last: a control segment whose incarnation is not zero stands for a complete cell.
  for (auto& cell : cells.cells_) cell.control.block->incarnation.store(1, std::memory_order_release);
  return cells;
}

namespace {

/// What a cell has besides the segments of its epochs: these come and go.
std::vector<std::string> lasting_segments(const std::vector<shm::Layout>& all, const std::vector<shm::Layout>& epoch) {
  std::vector<std::string> names;
  for (const auto& layout : all) {
    bool comes_and_goes =
        std::any_of(epoch.begin(), epoch.end(), [&](const auto& one) { return one.name == layout.name; });
    if (!comes_and_goes) names.push_back(layout.name);
  }
  return names;
}

/// Whether the heads of these segments of a rank are as they were written; logs the first that is not.
bool heads_are_intact(const std::vector<std::string>& names, int rank, const shm::KeeperClient& keeper) {
  for (const std::string& name : names) {
    try {
      shm::Segment::describe(keeper.get(shm::held_name(rank, name), soon()).get());
    } catch (const Error& error) {
      log::warn("segment {} of rank {} is damaged, so the run goes on from its last checkpoint: {}", name, rank,
                error.what());
      return false;
    }
  }
  return true;
}

}  // namespace

std::optional<Cells> Cells::attach(const config::Config& config, const service::Job& job, coordinator::RankRange ranks,
                                   const shm::KeeperClient& keeper) {
  std::set<std::string> names;
  for (const auto& held : keeper.list(soon())) names.insert(held.name);
  Cells cells;
  cells.ranks_ = ranks;
  for (int rank = ranks.first; rank < ranks.first + ranks.count; ++rank) {
    service::JobEpoch first = job.first_epoch();
    auto placement = placement::build(config, rank, first.optimizers());
    auto all = shm::cell_layouts(config, placement, first.number);
    auto of_epoch = shm::epoch_layouts(config, placement, first.number);
    auto is_held = [&](const std::string& name) { return names.contains(shm::held_name(rank, name)); };
    std::vector<std::string> lasting = lasting_segments(all, of_epoch);
    if (!std::all_of(lasting.begin(), lasting.end(), is_held)) return std::nullopt;
    os::Fd fd = keeper.get(shm::held_name(rank, control_name), soon());
    if (!has_head(fd) || !heads_are_intact({control_name}, rank, keeper)) return std::nullopt;
    shm::Segment segment = shm::Segment::attach(fd.get(), shm::control_layout(config, placement), job.id);
    service::Control control = service::control_of(segment);
    if (control.block->incarnation.load(std::memory_order_acquire) == 0) return std::nullopt;
    // Of an epoch that another one took over from, some may have been given back.
    std::uint64_t in_force = step_protocol::epoch_in_force(*control.block);
    std::vector<std::string> needed = {shm::state_name(in_force), shm::side_name(in_force)};
    if (in_force == first.number)
      for (const shm::Layout& layout : of_epoch) needed.push_back(layout.name);
    if (!std::all_of(needed.begin(), needed.end(), is_held)) return std::nullopt;
    needed.insert(needed.end(), lasting.begin(), lasting.end());
    if (!heads_are_intact(needed, rank, keeper)) return std::nullopt;
    cells.cells_.push_back({std::move(segment), control});
  }
  // The launcher before this one may have died between two cells.
  auto prepared = [](Cell& cell) { return cell.control.block->prepared_change.load(std::memory_order_acquire); };
  auto newest = std::max_element(cells.cells_.begin(), cells.cells_.end(),
                                 [&](Cell& one, Cell& other) { return prepared(one) < prepared(other); });
  if (newest != cells.cells_.end()) cells.prepare_change(step_protocol::offered_setting(*newest->control.block));
  return cells;
}

void Cells::drop_all(const shm::KeeperClient& keeper) {
  for (const auto& held : keeper.list(soon())) keeper.drop(held.name, soon());
}

std::uint64_t Cells::load_step() { return first().block->load_step.load(); }

std::uint64_t Cells::highest_generation() {
  std::uint64_t highest = 0;
  for (auto& cell : cells_)
    highest = std::max({highest, cell.control.block->generation.load(), cell.control.block->joined_generation.load()});
  return highest;
}

void Cells::announce_generation(std::uint64_t generation) {
  for (auto& cell : cells_) os::store_and_wake(cell.control.block->generation, generation);
}

bool Cells::all_loaded() {
  return std::all_of(cells_.begin(), cells_.end(),
                     [](Cell& cell) { return cell.control.block->state_ready.load(std::memory_order_acquire) == 1; });
}

bool Cells::all_formed(std::uint64_t generation) {
  return std::all_of(cells_.begin(), cells_.end(),
                     [&](Cell& cell) { return cell.control.block->formed_generation.load() == generation; });
}

void Cells::request_stop() {
  for (auto& cell : cells_) os::store_and_wake(cell.control.block->stop_request, 1);
}

bool Cells::stop_requested() { return first().block->stop_request.load() != 0; }

std::uint64_t Cells::request_snapshot() {
  std::uint64_t number = first().block->snapshot_request.load() + 1;
  for (auto& cell : cells_) os::store_and_wake(cell.control.block->snapshot_request, number);
  return number;
}

void Cells::order_rescue(const coordinator::RescueOrder& order) {
  for (int rank = ranks_.first; rank < ranks_.first + ranks_.count; ++rank) {
    step_protocol::ControlBlock& block = *control(rank).block;
    if (block.rescue_step.load() == order.step) continue;
    block.rescue_replicas.store(order.replicas_for(rank), std::memory_order_release);
    os::store_and_wake(block.rescue_step, order.step);
  }
}

void Cells::end_rescue() {
  for (auto& cell : cells_) os::store_and_wake(cell.control.block->rescue_step, 0);
}

std::vector<std::uint64_t> Cells::decided_steps() {
  std::vector<std::uint64_t> steps;
  for (auto& cell : cells_) steps.push_back(cell.control.block->decided_step.load(std::memory_order_acquire));
  return steps;
}

step_protocol::Setting Cells::prepared_change() { return step_protocol::offered_setting(*first().block); }

void Cells::prepare_change(const step_protocol::Setting& setting) {
  for (auto& cell : cells_) step_protocol::prepare(*cell.control.block, setting);
}

std::optional<step_protocol::Setting> Cells::change(std::uint64_t number) {
  return step_protocol::find_setting(*first().block, number);
}

std::uint64_t Cells::decided_step() { return first().block->decided_step.load(std::memory_order_acquire); }

const step_protocol::DecisionRecord* Cells::record_of(std::uint64_t step) {
  const auto& record = first().block->record_of(step);
  return step > 0 && record.step == step && decided_step() >= step && record.intact() ? &record : nullptr;
}

bool Cells::ends_after_decided() {
  const auto* record = record_of(decided_step());
  return record && record->stop_after != 0;
}

double Cells::loss_of(std::uint64_t step) {
  const auto* record = record_of(step);
  bool known = record && record->loss_tokens > 0;
  return known ? record->loss_sum / static_cast<double>(record->loss_tokens) : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace ganymede::launcher
