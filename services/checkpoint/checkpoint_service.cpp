#include "services/checkpoint/checkpoint_service.h"

#include <algorithm>
#include <map>

#include "common/base/deadline.h"
#include "common/base/error.h"
#include "common/base/log.h"
#include "common/base/text.h"
#include "common/cell/layouts.h"
#include "common/os/files.h"
#include "common/os/futex.h"
#include "common/service/settings.h"
#include "common/step_protocol/change.h"
#include "common/step_protocol/snapshot_machine.h"
#include "common/step_protocol/snapshot_statistics.h"
#include "services/checkpoint/manifests.h"
#include "services/checkpoint/restore.h"

namespace ganymede::checkpoint {

using namespace step_protocol;

namespace {

constexpr double far_seconds = 1e8;         // an idle service waits as long as the run goes on
constexpr double commit_look_seconds = .1;  // how often rank 0 asks whether all parts are durable
constexpr double tidy_look_seconds = 2;     // how often the others look for manifests that are gone
constexpr double recover_seconds = 2;       // how often a disk that cannot be used is tried again

/// PartRecord::began.
std::map<std::string, std::vector<std::uint64_t>> ages(const LiveCell& cell) {
  std::map<std::string, std::vector<std::uint64_t>> began;
  for (std::size_t i = 0; i < cell.placement->parameters.size(); ++i) {
    std::size_t slots = cell.placement->slots_of(static_cast<int>(i));
    auto of_slots = cell.began.subspan(i * cell.placement->columns.size(), slots);
    if (std::ranges::all_of(of_slots, [](std::uint64_t updates) { return updates == 0; })) continue;
    began[cell.placement->parameters[i].name] = {of_slots.begin(), of_slots.end()};
  }
  return began;
}

/// PartRecord::row_slots.
std::map<std::string, std::vector<std::string>> row_slots(const placement::Placement& placement) {
  std::map<std::string, std::vector<std::string>> slots;
  for (std::size_t i = 0; i < placement.parameters.size(); ++i) {
    const placement::OptimizerFacts& optimizer = placement.update.optimizer_of(static_cast<int>(i));
    if (!optimizer.row_slots.empty()) slots[placement.parameters[i].name] = optimizer.row_slots;
  }
  return slots;
}

}  // namespace

CheckpointService::CheckpointService(service::Context& context, Reports& reports, Settings settings)
    : context_(context),
      reports_(reports),
      settings_(std::move(settings)),
      epoch_(epoch_in_force(*context.control().block)),
      cell_(live_cell()),
      plan_(plan_values(*cell_.placement, settings_.value_elements)) {
  os::make_private_folder(settings_.checkpoints);
}

LiveCell CheckpointService::live_cell() {
  LiveCell cell;
  cell.placement = &context_.placement_of(epoch_);
  cell.control = context_.control().block;
  cell.master = context_.segment("master").span<float>("values");
  shm::Segment& state = context_.segment(shm::state_name(epoch_));
  for (std::size_t i = 0; i < cell.placement->columns.size(); ++i) {
    cell.state.emplace_back(state.span<float>(fmt::format("slot.{}", i)));
  }
  cell.began = state.span<std::uint64_t>("began");
  shm::Segment& side = context_.segment(shm::side_name(epoch_));
  cell.read_marks = side.span<Word>("read_marks");
  cell.image_flags = side.span<Word>("image_flags");
  cell.images = side.span<float>("images");
  return cell;
}

/// No other optimizer takes over while a snapshot is under way, so the epoch of an armed one is in force.
void CheckpointService::follow_epoch() {
  std::uint64_t now = epoch_in_force(*cell_.control), before = epoch_;
  if (now == before) return;
  epoch_ = now;
  cell_ = live_cell();
  plan_ = plan_values(*cell_.placement, settings_.value_elements);
  context_.release_epoch(before);
}

void CheckpointService::at(Activity activity, const char* detail) {
  context_.at(static_cast<std::uint64_t>(activity), 0, detail);
}

PartStore& CheckpointService::store() {
  if (!store_) store_.emplace(part_folder(settings_.checkpoints, context_.rank()), settings_.reached);
  return *store_;
}

void CheckpointService::restore_if_asked() {
  ControlBlock& control = *context_.control().block;
  std::uint64_t step = control.load_step.load(std::memory_order_acquire);
  if (step == 0 || control.restored.load(std::memory_order_acquire) != 0 ||
      control.state_ready.load(std::memory_order_acquire) != 0) {
    return;
  }
  auto began = Clock::now();
  at(Activity::restoring, "reads the checkpoint to start from");
  auto progressed = [&] { at(Activity::restoring, "reads the checkpoint to start from"); };
  CheckpointView view =
      open_checkpoint(settings_.load_from.empty() ? settings_.checkpoints : settings_.load_from, step, progressed);
  shm::Segment& state = context_.segment(shm::state_name(epoch_));
  CellArrays arrays{context_.segment("master").span<float>("values"), {}, state.span<std::uint64_t>("began")};
  for (std::size_t i = 0; i < cell_.placement->columns.size(); ++i) {
    arrays.state.push_back(state.span<float>(fmt::format("slot.{}", i)));
  }
  restore(view, *cell_.placement, arrays, [&](std::uint64_t, std::uint64_t) { progressed(); });
  bool own = settings_.load_from.empty();  // what is usual in another run says nothing about this one
  control.loaded_updates = view.manifest().updates;
  control.loaded_statistics = own ? view.manifest().statistics.value_or(StepStatistics{}) : StepStatistics{};
  os::store_and_wake(control.restored, 1);
  log::info("restored step {} from {} in {}", step, view.folder(), human_seconds(seconds_since(began)));
}

bool CheckpointService::serve() {
  // Before the next snapshot: when that is armed, the parts of the one before are durable on all ranks.
  if (try_commit()) return true;
  std::uint64_t word = cell_.control->snapshot.load(std::memory_order_acquire);
  if (!is_armed(word)) return rescue();
  take(snapshot_step(word));
  return true;
}

void CheckpointService::take(std::uint64_t step) {
  auto began = Clock::now();
  try {
    follow_epoch();
    tidy();
    mark_others(cell_, step);
    std::optional<PartRecord> record = write_part(step, cell_.placement->replica, store());
    if (!record) {
      log::warn("the snapshot of step {} was cancelled before it was read", step);
      return;
    }
    log::info("part of step {}: {} in {}", step, human_bytes(static_cast<double>(record->bytes())),
              human_seconds(seconds_since(began)));
    publish(step, *record, began);
  } catch (const Error& error) {
    give_up(step, error.what());
  }
}

/// What `replica` answers for, as the part of its rank. Nothing when the snapshot was cancelled or the service must
/// finish.
std::optional<PartRecord> CheckpointService::write_part(std::uint64_t step, int replica, PartStore& to) {
  placement::Placement seat = *cell_.placement;
  seat.replica = replica;
  PartRecord begun;
  begun.step = step;
  begun.rank = seat.replica_ranks.at(static_cast<std::size_t>(replica));
  begun.job = context_.job();
  begun.optimizers = settings_.optimizers_of(epoch_);
  begun.config = config::effective(service::config_in_force(context_.config_of(epoch_), *cell_.control));
  begun.began = ages(cell_);
  begun.row_slots = row_slots(*cell_.placement);
  begun.slots = cell_.placement->update.slot_names();
  begun.slots.insert(begun.slots.begin(), master_slot);
  to.drop(step);  // left by a kill, or by an attempt that failed
  PartWriter writer(to.incoming_folder(step), begun, [&] {
    at(Activity::writing, "writes a part to disk");
    settings_.reached("piece written");
  });
  bool own = replica == cell_.placement->replica;
  auto plan = own ? plan_ : plan_values(seat, settings_.value_elements);
  bool whole = read_snapshot(cell_, step, plan, writer, [&] {
    at(Activity::reading, "reads a snapshot");
    settings_.reached("value");
    return !context_.finishing();
  });
  if (!whole) return {};
  at(Activity::writing, "makes a part durable");
  to.ingest(step, writer.finish());
  if (!still_armed(cell_, step)) {
    to.drop(step);
    return {};
  }
  return writer.record();
}

void CheckpointService::publish(std::uint64_t step, const PartRecord& record, Clock::time_point began) {
  std::string hash = record.hash();
  reports_.part_durable(step, context_.rank(), record.bytes(), hash);
  settings_.reached("part reported");
  end_snapshot(cell_, step);
  settings_.reached("snapshot ended");
  if (context_.rank() == 0) pending_ = Pending{step, record.bytes(), hash, record.config, record.optimizers, began};
}

bool CheckpointService::try_commit() {
  if (!pending_) return false;
  Receipt receipt = reports_.part_durable(pending_->step, context_.rank(), pending_->bytes, pending_->hash);
  if (!receipt.complete) return false;
  at(Activity::committing, "commits a checkpoint");
  Pending done = *pending_;
  pending_.reset();
  try {
    service::Manifest manifest =
        make_manifest(context_.config(), context_.placement(), done.step, receipt, settings_.dataset);
    manifest.config = done.config;
    manifest.optimizers = done.optimizers;
    if (!done.optimizers.empty()) manifest.optimizer = done.optimizers.front().name;
    if (auto kept = step_protocol::kept_statistics(*cell_.control, done.step)) {
      manifest.statistics = kept->statistics;
      manifest.updates = kept->updates;
    }
    settings_.reached("before manifest");
    service::write_manifest(settings_.checkpoints, manifest);
    settings_.reached("manifest written");
    reports_.committed(done.step, manifest.bytes(), seconds_since(done.began));
  } catch (const Error& error) {
    give_up(done.step, error.what());
    return true;
  }
  try {
    tidy();
  } catch (const Error& error) {  // this checkpoint stands; the next one tries again
    log::warn("older checkpoints could not be removed: {}", error.what());
    store_.reset();
  }
  return true;
}

void CheckpointService::tidy() {
  if (context_.rank() == 0)
    prune_manifests(settings_.checkpoints, context_.config().checkpoint.keep_last, settings_.reached);
  prune_parts(settings_.checkpoints, store());
}

/// Training goes on without this checkpoint. The database is opened anew: after a failed write RocksDB refuses more.
void CheckpointService::give_up(std::uint64_t step, const std::string& text) {
  log::error("the checkpoint of step {} failed: {}", step, text);
  end_snapshot(cell_, step);
  store_.reset();
  reports_.failed(step, text);
}

/// For so long at most, and not beyond the moment when the world is left; whether one is armed.
bool CheckpointService::await_snapshot(double seconds) {
  bool due = rescue_is_due();
  Deadline look = Deadline::after_seconds(due ? std::min(seconds, commit_look_seconds) : seconds);
  return context_.wait(
      cell_.control->snapshot, [](std::uint64_t word) { return is_armed(word); },
      [&] { return look.passed() || (!due && rescue_is_due()); }, Deadline::after_seconds(far_seconds), "a snapshot");
}

void CheckpointService::run() {
  restore_if_asked();
  while (!context_.finishing() && !try_to_recover()) await_snapshot(recover_seconds);
  while (!context_.finishing()) {
    if (serve()) continue;
    at(Activity::idle, pending_ ? "waiting for the parts of other ranks" : "waiting for a snapshot");
    bool armed = await_snapshot(pending_ ? commit_look_seconds : tidy_look_seconds);
    if (!armed && !pending_ && store_ && store_->steps().size() > 1) prune_parts(settings_.checkpoints, *store_);
  }
}

void service_body(service::Context& context) {
  std::unique_ptr<Reports> reports = launcher_reports(context.launcher_client(), context.rank());
  CheckpointService::Settings settings;
  service::Job job = service::read_job();
  settings.load_from = job.load_from;
  settings.dataset = job.dataset;
  settings.optimizers_of = [](std::uint64_t epoch) {
    std::vector<service::ManifestOptimizer> optimizers;
    for (const service::JobPlugin& plugin : service::read_job().epoch(epoch).plugins)
      optimizers.push_back({plugin.facts.name, plugin.version, fmt::format("{:016x}", plugin.hash)});
    return optimizers;
  };
  CheckpointService(context, *reports, settings).run();
}

}  // namespace ganymede::checkpoint
