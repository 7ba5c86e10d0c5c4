#include "services/optimizer/server.h"

#include <algorithm>

#include "common/base/error.h"
#include "common/base/log.h"
#include "common/cell/layouts.h"
#include "common/service/run_directory.h"
#include "common/step_protocol/change.h"
#include "services/optimizer/loading.h"
#include "services/optimizer/operations.h"
#include "services/optimizer/plugin.h"
#include "services/optimizer/update_engine.h"

namespace ganymede::optimizer {
namespace {

using step_protocol::UpdateActionKind;
using step_protocol::Word;

/// The copies that were made when the run began: the same code after every restart (rule 17).
Tables load_job_plugins(const service::Job& job) {
  Tables tables;
  for (const service::JobPlugin& wanted : job.plugins) {
    Plugin plugin = load_plugin(wanted.file);
    if (plugin.hash != wanted.hash) {
      fail(
          "optimizer plugin {} was changed since the run began (hash {:016x}, expected {:016x}): put the old file back",
          wanted.file, plugin.hash, wanted.hash);
    }
    if (plugin.facts(wanted.facts.name) != wanted.facts) {
      fail("optimizer plugin {} has other state slots than {} says: start the run again", wanted.file,
           service::job_file);
    }
    log::info("optimizer {} {} from {}", plugin.table->name, plugin.table->version, wanted.file);
    tables.push_back(plugin.table);
  }
  return tables;
}

/// Sleeps until the worker has brought back the matrices of a bucket, at most about a second.
void await_matrices(service::Context& context, const Word& returned, const step_protocol::UpdateAction& action) {
  int bucket = context.placement().chunks[action.chunk].bucket;
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

double side_wait_seconds(const config::Config& config) { return config.launch.collective_timeout_seconds / 2; }

CellMemory attach(service::Context& context) {
  service::Control& control = context.control();
  std::uint64_t epoch = step_protocol::epoch_in_force(*control.block);
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
  for (std::size_t i = 0; i < context.placement().columns.size(); i++) {
    memory.state.push_back(state.span<float>(fmt::format("slot.{}", i)));
  }
  memory.matrices_sent = words.matrices_sent;
  memory.matrices_returned = words.matrices_returned;
  if (context.placement().matrix_elements > 0) {
    shm::Segment& matrices = context.segment(shm::matrices_name(epoch));
    memory.sent = matrices.span<float>("sent");
    memory.returned = matrices.span<const float>("returned");
  }
  memory.redo = state.span<float>("redo");
  memory.working = context.segment("working").span<std::byte>("values");
  memory.working_form = wire::working_form(context.config(), context.placement());
  memory.read_marks = side.span<Word>("read_marks");
  memory.image_flags = side.span<Word>("image_flags");
  memory.images = side.span<float>("images");
  return memory;
}

void serve(service::Context& context, const std::function<bool()>& ended) {
  service::Job job = service::read_job();
  Tables tables = load_job_plugins(job);
  CellMemory memory = attach(context);
  if (!load_state(context, memory)) return;
  EngineOptions options;
  options.bias_update_rate = context.config().model.bias_update_rate;
  options.optimizer_hash = job.plugin_hash();
  options.threads = context.config().optimizer.threads;
  options.side_wait_seconds = side_wait_seconds(context.config());
  options.finishing = [&context] { return context.finishing(); };
  UpdateEngine engine(context.placement(), tables, memory, options);
  const Word& decided_step = memory.control->decided_step;
  int bucket = -1;
  while (!context.finishing() && !ended()) {
    std::uint64_t seen = decided_step.load(std::memory_order_acquire);
    Advance done = engine.advance();
    if (done.action.kind == UpdateActionKind::await_decision) {
      bucket = -1;
      await_decision(context, decided_step, seen);
      continue;
    }
    int now = context.placement().chunks[done.action.chunk].bucket;
    if (done.action.kind == UpdateActionKind::compute && !done.carried_out) {
      bucket = -1;
      await_matrices(context, memory.matrices_returned[static_cast<std::size_t>(now)], done.action);
      continue;
    }
    if (now != bucket) context.at(operation::applying, static_cast<std::uint64_t>(now), "applying a step");
    bucket = now;
  }
}

}  // namespace ganymede::optimizer
