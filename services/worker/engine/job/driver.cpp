#include "services/worker/engine/job/driver.h"

#include <algorithm>
#include <optional>

#include "common/base/error.h"
#include "common/base/log.h"
#include "common/step_protocol/skip.h"
#include "services/worker/engine/job/attempt_end.h"
#include "services/worker/engine/job/communicator_factory.h"
#include "services/worker/engine/job/epoch_engine.h"
#include "services/worker/engine/job/generation_watch.h"
#include "services/worker/engine/job/membership.h"
#include "services/worker/engine/job/peak.h"
#include "services/worker/engine/job/step_reporter.h"
#include "services/worker/engine/job/validation_due.h"
#include "services/worker/engine/process_settings.h"
#include "services/worker/engine/reductions.h"

namespace ganymede::worker {
namespace {

constexpr const char* peak_file = "peak.json";  // in the run directory
constexpr double start_seconds = 3600;          // loading a checkpoint, and waiting for all ranks, may take long
constexpr double formation_seconds = 60;        // all members have loaded their state: what takes longer is a fault
constexpr double notice_seconds = 60;        // for the launcher to kill a silent peer whose time is up, and see its end
constexpr double start_notice_seconds = 10;  // the same when no step is under way

class Driver {
 public:
  explicit Driver(service::Context& context)
      : context_(context),
        config_(context.config()),
        block_(*context.control().block),
        flops_(model_spec::flops_per_token(config_.model, config_.data.seq_len)) {
    if (context.rank() == 0) reporter_.emplace(context);
  }

  void run();

 private:
  /// The work of one generation; returns when the run is complete.
  void attempt(std::uint64_t generation, AttemptEnd& end);
  void steps(EpochEngine& engine, std::uint64_t generation, std::uint64_t first);
  void after_step(EpochEngine& engine, StepNews news, std::size_t may_wait);
  double patience() const;
  bool is_last(std::uint64_t step) const;
  /// Of a step that nothing else is known of.
  StepResult of_record(const step_protocol::DecisionRecord& record) const;
  std::uint64_t tokens_of_a_step() const {
    return static_cast<std::uint64_t>(config_.data.rows_per_step) * static_cast<std::uint64_t>(config_.data.seq_len);
  }

  service::Context& context_;
  const config::Config& config_;
  const step_protocol::ControlBlock& block_;
  double flops_;           // of a token
  double peak_flops_ = 0;  // a second, of the whole world
  std::optional<StepReporter> reporter_;
  bool formed_ = false;   // the ranks of this attempt's generation have met
  TrafficLines traffic_;  // up to the end of the step before
};

void Driver::run() {
  auto loaded = [](std::uint64_t word) { return word == 1; };
  if (!context_.wait(block_.state_ready, loaded, {}, Deadline::after_seconds(start_seconds),
                     "the state that the optimizer server loads")) {
    return;
  }
  // Only now: while the optimizer server loads its state, it has the cores.
  if (reporter_) peak_flops_ = peak_flops(config_, peak_file) * config_.parallel.ranks;
  auto generation =
      join_next_generation(context_, Deadline::after_seconds(start_seconds), "the workers and states of all ranks");
  while (generation) {
    AttemptEnd end;
    std::string cause;
    formed_ = false;
    GenerationWatch watch(context_, *generation, [&](const std::string& text) { end.over(text); });
    try {
      return attempt(*generation, end);
    } catch (const std::exception& fault) {
      if (context_.finishing()) return;
      if (!mended_by_new_generation(fault)) rethrow_as_error(fault);
      cause = first_line(fault);
      log::warn("generation {} is over: {}", *generation, cause);
    }
    generation = rejoin(context_, patience(), [&] { report_failed_generation(context_, *generation, cause); });
  }
}

/// Seconds until a launcher has seen a process die or has killed a silent one. In a step one may also stand still,
/// while it lives, for as long as the others wait for it.
double Driver::patience() const {
  const config::Launch& launch = config_.launch;
  if (!formed_) return launch.heartbeat_timeout_seconds + start_notice_seconds;
  return std::max(launch.heartbeat_timeout_seconds, launch.collective_timeout_seconds) + notice_seconds;
}

void Driver::attempt(std::uint64_t generation, AttemptEnd& end) {
  double timeout = config_.launch.collective_timeout_seconds;
  context_.at(in_words, 0, "forming communicators");
  CommunicatorFactory factory(context_, generation);
  EpochEngine engine(context_, factory, generation, std::min(timeout, formation_seconds), end);
  context_.at(in_words, 0, "exchange of a generation");
  Beginning begin = exchange(context_, engine.communicators(), generation, Deadline::after_seconds(timeout));
  formed_ = true;
  engine.begin(begin.update_pending ? begin.step - 1 : 0);
  traffic_ = engine.communicators().traffic();
  steps(engine, generation, begin.step);
  std::uint64_t last = block_.decided_step.load(std::memory_order_acquire);
  context_.at(in_words, 0, "waiting for the last update everywhere");
  leave_together(
      context_, engine.communicators(), last, [&] { return end.is_over(); }, timeout);
  log::info("step {} is committed on all ranks", last);
}

void Driver::steps(EpochEngine& engine, std::uint64_t generation, std::uint64_t first) {
  if (first > block_.load_step.load(std::memory_order_acquire) + 1) {
    // Whoever computed the step before may have died before its validation or report, and before the report of the
    // step before that one: that record lasts until the next step is decided.
    StepNews known;
    known.generation = generation;
    known.result = of_record(block_.record_of(first - 1));
    after_step(engine, std::move(known), 0);
  }
  for (std::uint64_t step = first; !is_last(step - 1); ++step) {
    StepNews news;
    news.generation = generation;
    news.result = engine->train(step);
    news.traffic = since(engine.communicators().traffic(), traffic_);
    engine.follow(news.result.record);
    after_step(engine, std::move(news), 1);
  }
}

StepResult Driver::of_record(const step_protocol::DecisionRecord& record) const {
  StepResult result;
  result.record = record;
  if (record.skip_reason == static_cast<std::uint64_t>(step_protocol::SkipReason::listed)) return result;
  result.tokens = tokens_of_a_step();
  result.attention_logit_max = largest_logit(context_, record);
  return result;
}

void Driver::after_step(EpochEngine& engine, StepNews news, std::size_t may_wait) {
  std::uint64_t step = news.result.record.step;
  if (validation_due(config_, step)) news.validation_loss = engine->validate(step);
  traffic_ = engine.communicators().traffic();
  if (!reporter_) return;
  news.arena_moved = 2 * static_cast<std::uint64_t>(news.result.arena_bytes);
  news.flops = flops_ * static_cast<double>(news.result.tokens);
  news.peak_flops = peak_flops_;
  add_optimizer(context_, news);
  // The next step's record overwrites that of the step before this one: its report must be taken, or its record read.
  context_.at(in_words, 0, "handing reports to the launcher");
  reporter_->send(std::move(news), may_wait, config_.launch.collective_timeout_seconds / 2);
}

bool Driver::is_last(std::uint64_t step) const {
  const step_protocol::DecisionRecord& record = block_.record_of(step);
  return step >= static_cast<std::uint64_t>(config_.run.steps) || (record.step == step && record.stop_after != 0);
}

}  // namespace

void drive(service::Context& context) {
  set_up_process(context.config());
  set_up_thread(false);
  Driver(context).run();
}

}  // namespace ganymede::worker
