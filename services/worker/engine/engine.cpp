#include "services/worker/engine/engine.h"

#include <algorithm>

#include "common/base/error.h"
#include "common/cell/exchange_layout.h"
#include "common/config/step_ranges.h"
#include "common/os/files.h"
#include "common/plan/cost/measured.h"
#include "common/plan/exchange_form.h"
#include "common/plan/pool.h"
#include "common/plan/timeline.h"
#include "common/step_protocol/change.h"
#include "services/worker/engine/compute_operations.h"
#include "services/worker/engine/current_operations.h"
#include "services/worker/engine/exchange_operations.h"
#include "services/worker/engine/exposed_update.h"
#include "services/worker/engine/matrix_operations.h"
#include "services/worker/engine/pool.h"
#include "services/worker/engine/process_settings.h"
#include "services/worker/engine/protocol_operations.h"
#include "services/worker/engine/schedule.h"
#include "services/worker/engine/transfer_operations.h"

namespace ganymede::worker {
namespace {

/// A plan with the functions that carry out its operations.
struct Pass {
  Pass(Workbench& bench, plan::StepPlan given, plan::PlanKind kind)
      : plan(std::move(given)),
        compute(bench, plan, kind),
        transfers(bench, plan),
        exchange(bench, plan),
        matrices(bench, plan),
        protocol(bench, kind) {
    compute.install(table);
    transfers.install(table);
    if (bench.exchange != nullptr) exchange.install(table);
    matrices.install(table);
    protocol.install(table);
  }
  plan::StepPlan plan;
  ComputeOperations compute;
  TransferOperations transfers;
  ExchangeOperations exchange;
  MatrixOperations matrices;
  ProtocolOperations protocol;
  OperationTable table;
};

double imbalance(const model_spec::ModelSpec& spec, std::span<const std::int64_t> counts) {
  double worst = 0;
  auto experts = static_cast<std::size_t>(spec.experts);
  for (const model_spec::LayerSpec& layer : spec.layers) {
    std::int64_t first = first_count(spec, layer.index);
    if (first < 0) continue;
    std::span<const std::int64_t> of_layer = counts.subspan(static_cast<std::size_t>(first), experts);
    double sum = 0;
    for (std::int64_t count : of_layer) sum += static_cast<double>(count);
    auto most = static_cast<double>(*std::max_element(of_layer.begin(), of_layer.end()));
    if (sum > 0) worst = std::max(worst, most * static_cast<double>(experts) / sum);
  }
  return worst;
}

Pool pool_of(service::Context& context, std::uint64_t epoch) {
  const config::Config& config = context.config_of(epoch);
  if (plan::pool_is_published(config)) return Pool(context.segment(shm::pool_name(epoch)).span<std::byte>("pool"));
  return Pool(plan::pool_bytes(config, context.placement_of(epoch)));
}

}  // namespace

struct Engine::State {
  State(service::Context& context, Communicators& communicators, std::uint64_t generation, std::uint64_t optimizer_hash,
        std::uint64_t epoch)
      : config(context.config_of(epoch)),
        placement(context.placement_of(epoch)),
        spec(model_spec::build(config.model)),
        generation(generation),
        optimizer_hash(optimizer_hash),
        train_plan(plan::build(config, placement, plan::PlanKind::train)),
        validate_plan(plan::build(config, placement, plan::PlanKind::validate)),
        update_plan(plan::build(config, placement, plan::PlanKind::update)),
        skip_plan(plan::build(config, placement, plan::PlanKind::skip)),
        pool(pool_of(context, epoch)),
        surroundings(context, config.launch.collective_timeout_seconds),
        current(
            [this](const plan::Operation& o) {
              surroundings.context().at(static_cast<std::uint64_t>(o.kind), static_cast<std::uint64_t>(o.bucket),
                                        describe(o).c_str());
            },
            [this](const service::PlannedTime& time) { surroundings.context().plan(time); }),
        rotary(spec, config.data.seq_len, config.rope_cache == config::RopeCache::per_layer),
        exchange(make_exchange(communicators.exchange(), surroundings)),
        bench{config,        placement,   spec,   map_cell(context, epoch), surroundings,
              communicators, pool.data(), rotary, exchange.get(),           {}},
        train(bench, train_plan, plan::PlanKind::train),
        validate(bench, validate_plan, plan::PlanKind::validate),
        update(bench, update_plan, plan::PlanKind::update),
        skip(bench, skip_plan, plan::PlanKind::skip),
        first_pass(bench, train_plan, plan::PlanKind::train),
        executor(hooks(communicators)) {
    first_pass.protocol.install_first_pass(first_pass.table);
    surroundings.watch_waits([this](bool begins) { current.waits(begins); });
  }

  ExecutorHooks hooks(Communicators& communicators) {
    ExecutorHooks made;
    made.lane_started = [](plan::Lane lane) { set_up_thread(lane == plan::Lane::compute); };
    made.operation_started = [this](const plan::Operation& o) { current.started(o); };
    made.operation_ended = [this](const plan::Operation& o) { current.ended(o); };
    made.take_outside_wait = &Surroundings::take_own_wait;
    made.stop = [this, &communicators] {
      current.give_up();
      surroundings.interrupt();
      communicators.abort();
    };
    made.one_at_a_time = config.check.measure_operations;
    made.grace = std::chrono::nanoseconds(static_cast<std::int64_t>(config.launch.collective_timeout_seconds * 1e9));
    return made;
  }

  /// The first step of an engine is slower than those that follow and is left out.
  void measure(const ExecutorReport& report) {
    if (!config.check.measure_operations) return;
    if (warm) meter.add(report.spans);
    warm = true;
    if (meter.steps() == 0) return;
    os::write_file_atomically(fmt::format(plan::operations_file, placement.rank), meter.json(placement));
  }

  void begin(std::uint64_t step, std::uint64_t parameters_of, Batches& batches, int slot) {
    bench.pass = {};
    bench.pass.generation = generation;
    bench.pass.step = step;
    bench.pass.parameters_of = parameters_of;
    bench.pass.batches = &batches;
    bench.pass.slot = slot;
    bench.pass.policy = policy_of(config, *bench.cell.control.block, optimizer_hash);
    bench.pass.row_loss.assign(static_cast<std::size_t>(batches.rows), 0.0);
    bench.pass.dispatched.assign(static_cast<std::size_t>(batches.rows), {});
    bench.pass.expert_counts.assign(bench.cell.control.expert_counts.size(), 0);
  }

  void begin_training(std::uint64_t step) {
    Batches& batches = bench.cell.train;
    begin(step, step - 1, batches, static_cast<int>(step % batches.words.size()));
    bench.pass.reductions = reductions_of_step(surroundings.context(), bench.cell.epoch_number,
                                               previous_record(*bench.cell.control.block, step));
  }

  /// The first of two passes of a step (check.replay_every), and the second ready to be run.
  void compute_first(std::uint64_t step) {
    auto buckets = placement.buckets.size();
    begin_training(step);
    bench.pass.hashes.want(buckets);
    executor.run(first_pass.plan, first_pass.table);
    surroundings.take_waits();
    PassHashes hashes = std::move(bench.pass.hashes);
    begin_training(step);
    bench.pass.first_hashes = std::move(hashes);
    bench.pass.hashes.want(buckets);
  }

  void describe_memory(StepResult& result) const {
    result.predicted_peak = train.plan.peak_bytes;
    result.pool_bytes = pool.bytes();
    result.arena_bytes = train.plan.arena_bytes;
    result.rotary_bytes = rotary.bytes();
  }

  bool twice(std::uint64_t step) const {
    auto every = static_cast<std::uint64_t>(config.check.replay_every);
    return every > 0 && step % every == 0;
  }

  const config::Config& config;
  const placement::Placement& placement;
  model_spec::ModelSpec spec;
  std::uint64_t generation, optimizer_hash;
  plan::StepPlan train_plan, validate_plan, update_plan, skip_plan;
  Pool pool;
  Surroundings surroundings;
  CurrentOperations current;
  model::RotaryTables rotary;
  std::unique_ptr<model::ExpertExchange> exchange;
  Workbench bench;
  Pass train, validate, update, skip;
  Pass first_pass;  // of a step that is computed twice
  plan::OperationMeter meter{train_plan};
  bool warm = false;
  ThreadExecutor executor;
};

Engine::Engine(service::Context& context, Communicators& communicators, std::uint64_t generation,
               std::uint64_t optimizer_hash)
    : state_(std::make_unique<State>(context, communicators, generation, optimizer_hash,
                                     step_protocol::epoch_in_force(*context.control().block))) {
  plan::check(state_->train_plan);
  plan::check(state_->validate_plan);
  plan::check(state_->update_plan);
  plan::check(state_->skip_plan);
  auto arena = static_cast<std::int64_t>(state_->bench.cell.arena.size());
  if (arena < state_->train_plan.arena_bytes) {
    fail(
        "The segment arena has {} bytes and the plan needs {}: it was made for another configuration; start with a new "
        "run directory",
        arena, state_->train_plan.arena_bytes);
  }
}

Engine::~Engine() = default;

void Engine::cancel(const std::string& why) { state_->executor.cancel(why); }

StepResult Engine::train(std::uint64_t step) {
  State& state = *state_;
  if (config::lists_step(state.config.run.skip_steps, step)) return leave_out(step);
  Clock::time_point begin = Clock::now();
  StepResult result;
  if (state.twice(step)) {
    state.compute_first(step);
    result.replay_ms = 1e3 * seconds_since(begin);
  } else {
    state.begin_training(step);
  }
  ExecutorReport report = state.executor.run(state.train.plan, state.train.table);
  state.measure(report);
  result.record = state.bench.pass.record;
  result.tokens = static_cast<std::uint64_t>(state.config.data.rows_per_step) * state.config.data.seq_len;
  result.lanes = report.lanes;
  result.exposed_communication_ms = plan::sum_ms(plan::exposed_communication(state.train.plan, report.spans));
  result.update_exposed_ms = plan::sum_ms(exposed_update(state.train.plan, report.spans));
  result.waits_ms = state.surroundings.take_waits();
  result.imbalance = imbalance(state.spec, state.bench.pass.expert_counts);
  result.attention_logit_max = largest_logit(state.surroundings.context(), result.record);
  result.exchange_rows = state.bench.pass.exchange_rows;
  plan::ExchangeForm form = plan::exchange_form(state.config);
  result.exchange_rows_limit = form.travels() ? form.received() : 0;
  result.measured_peak = report.peak_bytes;
  state.describe_memory(result);
  result.wall_ms = 1e3 * seconds_since(begin);
  return result;
}

StepResult Engine::leave_out(std::uint64_t step) {
  State& state = *state_;
  Clock::time_point begin = Clock::now();
  state.begin_training(step);
  ExecutorReport report = state.executor.run(state.skip.plan, state.skip.table);
  StepResult result;
  result.record = state.bench.pass.record;
  result.lanes = report.lanes;
  result.waits_ms = state.surroundings.take_waits();
  state.describe_memory(result);
  result.wall_ms = 1e3 * seconds_since(begin);
  return result;
}

void Engine::finish_update(std::uint64_t step) {
  State& state = *state_;
  if (state.update_plan.operations.empty()) return;
  state.begin(step, step, state.bench.cell.train, 0);
  state.bench.pass.record = state.bench.cell.control.block->record_of(step);
  state.executor.run(state.update.plan, state.update.table);
  state.surroundings.take_waits();
}

double Engine::validate(std::uint64_t step) {
  State& state = *state_;
  state.begin(step, step, state.bench.cell.validation, 0);
  state.executor.run(state.validate.plan, state.validate.table);
  state.surroundings.take_waits();
  return state.bench.pass.loss;
}

}  // namespace ganymede::worker
