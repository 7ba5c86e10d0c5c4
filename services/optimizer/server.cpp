#include "services/optimizer/server.h"

#include <algorithm>
#include <optional>

#include "common/base/error.h"
#include "common/base/log.h"
#include "common/cell/layouts.h"
#include "common/os/futex.h"
#include "common/service/planned_times.h"
#include "common/service/run_directory.h"
#include "common/step_protocol/change.h"
#include "services/optimizer/loading.h"
#include "services/optimizer/master_check.h"
#include "services/optimizer/migration.h"
#include "services/optimizer/operations.h"
#include "services/optimizer/plugin.h"
#include "services/optimizer/update_engine.h"

namespace ganymede::optimizer {
namespace {

using step_protocol::UpdateActionKind;
using step_protocol::Word;

/// Sleeps until the worker has brought back the matrices of a bucket, at most about a second.
void await_matrices(service::Context& context, int bucket, const Word& returned,
                    const step_protocol::UpdateAction& action) {
  context.at(operation::awaiting_matrices, static_cast<std::uint64_t>(bucket), "waiting for matrices from the worker");
  Deadline pause = Deadline::after_seconds(1);
  context.wait(
      returned, [&](std::uint64_t step) { return step == action.step; }, [pause] { return pause.passed(); },
      Deadline::after_seconds(60), "the matrices of a bucket");
}

/// Sleeps until a step beyond `seen` is decided, at most about a second, so that the caller looks around.
void await_decision(service::Context& context, const Word& decided_step, std::uint64_t seen) {
  context.at(operation::awaiting_decision, 0, "waiting for a decision");
  Deadline pause = Deadline::after_seconds(1);
  context.wait(
      decided_step, [seen](std::uint64_t step) { return step != seen; }, [pause] { return pause.passed(); },
      Deadline::after_seconds(60), "the next decision");
}

}  // namespace

/// The same code after every restart (rule 17).
Tables load_plugins(const std::vector<service::JobPlugin>& plugins) {
  Tables tables;
  for (const service::JobPlugin& wanted : plugins) {
    Plugin plugin = load_plugin(wanted.file);
    if (plugin.hash != wanted.hash) {
      fail(
          "optimizer plugin {} was changed since the run began (hash {:016x}, expected {:016x}): put the old file back",
          wanted.file, plugin.hash, wanted.hash);
    }
    if (plugin.facts(wanted.facts.name) != wanted.facts) {
      fail("optimizer plugin {} has other state slots or reductions than {} says: start the run again", wanted.file,
           service::job_file);
    }
    tables.push_back(plugin.table);
  }
  return tables;
}

double side_wait_seconds(const config::Config& config) { return config.launch.collective_timeout_seconds / 2; }

CellMemory attach(service::Context& context, std::uint64_t epoch) {
  service::Control& control = context.control();
  const placement::Placement& placement = context.placement_of(epoch);
  service::EpochControl words = service::epoch_control(context, epoch);
  shm::Segment& state = context.segment(shm::state_name(epoch));
  shm::Segment& side = context.segment(shm::side_name(epoch));
  CellMemory memory;
  memory.control = control.block;
  memory.words = words.words;
  memory.working_copy_ready = control.working_copy_ready;
  memory.expert_counts = control.expert_counts;
  memory.gradients = context.segment("gradients").span<const float>("values");
  memory.master = context.segment("master").span<float>("values");
  for (std::size_t i = 0; i < placement.columns.size(); i++) {
    memory.state.push_back(state.span<float>(fmt::format("slot.{}", i)));
  }
  memory.matrices_sent = words.matrices_sent;
  memory.matrices_returned = words.matrices_returned;
  memory.began = state.span<std::uint64_t>("began");
  memory.reductions = words.reductions;
  if (placement.matrix_elements > 0) {
    shm::Segment& matrices = context.segment(shm::matrices_name(epoch));
    memory.sent = matrices.span<float>("sent");
    memory.returned = matrices.span<const float>("returned");
  }
  memory.redo = state.span<float>("redo");
  std::span<Word> strips = state.span<Word>("strips");
  memory.strips = {reinterpret_cast<step_protocol::StripWords*>(strips.data()),
                   strips.size_bytes() / sizeof(step_protocol::StripWords)};
  memory.working = context.segment("working").span<std::byte>("values");
  memory.working_form = wire::working_form(context.config(), placement);
  memory.read_marks = side.span<Word>("read_marks");
  memory.image_flags = side.span<Word>("image_flags");
  memory.images = side.span<float>("images");
  return memory;
}

namespace {

/// Whether the newest record names this epoch as the one to be warmed up; nothing when it says that a swap to it was
/// refused.
std::optional<bool> named(const step_protocol::ControlBlock& block, const step_protocol::DecisionRecord& record,
                          std::uint64_t epoch) {
  auto is_ours = [&](std::uint64_t change) {
    auto setting = step_protocol::find_setting(block, change);
    return change != 0 && setting && setting->state_epoch == epoch;
  };
  if (is_ours(record.refused_change)) return std::nullopt;
  return is_ours(record.swap_change);
}

/// The record that first names the swap. The step after it waits for this server, so it stays the newest one, unless
/// the swap is refused. Nothing then, or when the service has to finish.
std::optional<step_protocol::DecisionRecord> await_swap(service::Context& context, std::uint64_t epoch,
                                                        const std::function<bool()>& ended) {
  const step_protocol::ControlBlock& block = *context.control().block;
  while (!context.finishing() && !ended()) {
    std::uint64_t seen = block.decided_step.load(std::memory_order_acquire);
    step_protocol::DecisionRecord record = block.record_of(seen);
    if (record.step == seen && record.intact()) {
      std::optional<bool> begins = named(block, record, epoch);
      if (!begins) return std::nullopt;
      if (*begins) return record;
    }
    await_decision(context, block.decided_step, seen);
  }
  return std::nullopt;
}

/// Brings a standby server to where it can follow; nothing when a predecessor did. False when it has to end.
bool adopt(service::Context& context, const CellMemory& memory, const Tables& tables, std::uint64_t epoch,
           const std::function<bool()>& ended) {
  if (memory.words->chunks_done.load(std::memory_order_acquire) != 0) return true;
  auto record = await_swap(context, epoch, ended);
  if (!record) return false;
  CellMemory in_force = attach(context, record->state_epoch);
  const placement::Placement& old = context.placement_of(record->state_epoch);
  const placement::Placement& own = context.placement_of(epoch);
  context.at(operation::loading, 0, "taking over the state");
  bool committed = context.wait(
      in_force.words->chunks_done,
      [&](std::uint64_t done) { return step_protocol::committed_step(done, old.chunks.size()) >= record->step; }, ended,
      Deadline::after_seconds(context.config().launch.collective_timeout_seconds), "the state to take over");
  if (!committed) return false;
  Tables old_tables = load_plugins(service::read_job().epoch(record->state_epoch).plugins);
  migrate({&old, old_tables, in_force.state, in_force.began}, {&own, tables, memory.state, memory.began},
          record->updates, [&] { context.at(operation::loading, 0, "taking over the state"); });
  context.release_epoch(record->state_epoch);
  os::store_and_wake(memory.words->chunks_done, record->step * own.chunks.size());
  log::info("state epoch {} follows from step {} on", epoch, record->step + 1);
  return true;
}

EngineOptions options_of(service::Context& context, const service::JobEpoch& epoch, service::RepeatedWork& work) {
  EngineOptions options;
  options.bias_update_rate = context.config().model.bias_update_rate;
  options.optimizer_hash = service::plugin_hash(epoch.plugins);
  options.state_epoch = epoch.number;
  options.threads = context.config().optimizer.threads;
  options.side_wait_seconds = side_wait_seconds(context.config());
  options.finishing = [&context] { return context.finishing(); };
  options.waits_for_reader = [&work] {
    work.disturb(operation::awaiting_reader, 0, "waiting for the checkpoint service to read");
  };
  return options;
}

}  // namespace

void serve(service::Context& context, const std::function<bool()>& ended) {
  serve(context, context.epoch().value_or(step_protocol::epoch_in_force(*context.control().block)), ended);
}

void serve(service::Context& context, std::uint64_t epoch, const std::function<bool()>& ended) {
  service::JobEpoch job = service::read_job().epoch(epoch);
  Tables tables = load_plugins(job.plugins);
  for (std::size_t i = 0; i < tables.size(); i++)
    log::info("optimizer {} {} from {}", tables[i]->name, tables[i]->version, job.plugins[i].file);
  CellMemory memory = attach(context, epoch);
  const placement::Placement& placement = context.placement_of(epoch);
  bool in_force = step_protocol::epoch_in_force(*memory.control) == epoch;
  bool takes_over = in_force && memory.control->state_ready.load(std::memory_order_acquire) == 1;
  os::store_and_wake(*service::epoch_control(context, epoch).ready, 1);
  if (!(in_force ? load_state(context, placement, memory) : adopt(context, memory, tables, epoch, ended))) return;
  service::RepeatedWork work(context);
  UpdateEngine engine(placement, tables, memory, options_of(context, job, work));
  if (takes_over)
    check_master(placement, memory, engine.under_way(),
                 [&] { context.at(operation::loading, 0, "holding the master against its working copy"); });
  const Word& decided_step = memory.control->decided_step;
  int bucket = -1;
  while (!context.finishing() && !ended() && !engine.superseded()) {
    std::uint64_t seen = decided_step.load(std::memory_order_acquire);
    Advance done = engine.advance();
    if (done.action.kind == UpdateActionKind::await_decision) {
      bucket = -1;
      work.end();
      if (engine.superseded()) continue;
      await_decision(context, decided_step, seen);
      // Said before: a plugin that hangs does so in its first chunk.
      if (decided_step.load(std::memory_order_acquire) != seen) work.begin(operation::applying, 0, "applying a step");
      continue;
    }
    int now = placement.chunks[done.action.chunk].bucket;
    if (!done.carried_out) {
      if (context.finishing()) break;
      bucket = -1;
      work.end();
      await_matrices(context, now, memory.matrices_returned[static_cast<std::size_t>(now)], done.action);
      continue;
    }
    if (now != bucket) work.begin(operation::applying, static_cast<std::uint64_t>(now), "applying a step");
    bucket = now;
  }
  if (engine.superseded()) log::info("state epoch {} is another server's from step {} on", epoch, decided_step.load());
}

}  // namespace ganymede::optimizer
