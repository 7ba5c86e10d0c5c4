#include "services/optimizer/update_engine.h"

#include <algorithm>

#include "common/base/error.h"
#include "common/base/hash.h"
#include "common/base/log.h"
#include "common/os/futex.h"
#include "common/step_protocol/change.h"
#include "common/step_protocol/snapshot_machine.h"

namespace ganymede::optimizer {

namespace sp = step_protocol;
using sp::UpdateActionKind;

namespace {

/// The record of a step that another epoch's optimizer applies, with the values that its successor's setting has.
sp::DecisionRecord with_values(sp::DecisionRecord record, const sp::Setting& setting) {
  record.groups[0] = {setting.lr, setting.weight_decay};
  for (std::size_t i = 0; i < setting.group_count; i++) {
    const sp::GroupValues& group = setting.groups[i];
    record.groups[i + 1] = {group.lr < 0 ? setting.lr : group.lr,
                            group.weight_decay < 0 ? setting.weight_decay : group.weight_decay};
  }
  record.group_count = setting.group_count + 1;
  record.hyper_count = setting.hyper_count;
  std::copy_n(setting.hyper, setting.hyper_count, record.hyper);
  return record;
}

}  // namespace

UpdateEngine::UpdateEngine(const placement::Placement& placement, Tables tables, const CellMemory& memory,
                           EngineOptions options)
    : placement_(placement),
      memory_(memory),
      options_(std::move(options)),
      update_(placement, std::move(tables), memory, options_.bias_update_rate),
      images_(placement, memory, options_.side_wait_seconds, options_.waits_for_reader),
      span_update_(placement, memory, update_, images_, std::max(options_.threads, 1)) {
  span_update_.finishing = options_.finishing;
  span_update_.observed = options_.observed;
  bucket_end_.assign(placement.buckets.size(), 0);
  matrices_end_.assign(placement.buckets.size(), 0);
  for (std::size_t chunk = 0; chunk < placement.chunks.size(); chunk++) {
    const placement::Chunk& one = placement.chunks[chunk];
    (one.phase == placement::Phase::state ? matrices_end_ : bucket_end_)[one.bucket] = chunk + 1;
  }
  // A bucket of which this rank owns nothing is complete with the one before it.
  for (std::size_t i = 1; i < bucket_end_.size(); i++) bucket_end_[i] = std::max(bucket_end_[i], bucket_end_[i - 1]);
  if (sp::epoch_in_force(*memory.control) != options_.state_epoch) return;  // what is published is another's
  std::uint64_t done = memory.words->chunks_done.load(std::memory_order_acquire);
  std::uint64_t chunks = placement.chunks.size(), within = done % chunks;
  publish_buckets(done / chunks, within, chunks);
  publish_matrices(done / chunks, within, chunks);
  if (within == 0) return;
  publish_buckets(done / chunks + 1, 0, within);
  publish_matrices(done / chunks + 1, 0, within);
}

Advance UpdateEngine::advance() {
  sp::UpdateWords words = read_words();
  if (superseded()) return {};
  Action action = sp::next_action(state_, words, placement_.chunks.size());
  if (!perform(action)) return {action, false};
  state_ = sp::after(state_, action);
  return {action, true};
}

const Span& UpdateEngine::under_way() const {
  return span_update_.spans().at(memory_.words->chunks_done.load(std::memory_order_acquire) % placement_.chunks.size());
}

sp::UpdateWords UpdateEngine::read_words() {
  sp::ControlBlock& control = *memory_.control;
  sp::UpdateWords words;
  words.chunks_done = memory_.words->chunks_done.load(std::memory_order_acquire);
  words.snapshot = control.snapshot.load(std::memory_order_acquire);
  words.decided_step = control.decided_step.load(std::memory_order_acquire);
  std::uint64_t committed = sp::committed_step(words.chunks_done, placement_.chunks.size());
  if (record_.step != words.decided_step) read_record(words.decided_step, words.decided_step > committed);
  bool own = part_ == sp::ServerPart::applies;  // a standby server arms no snapshot
  words.record_snapshot_after = own && record_.snapshot_after != 0;
  words.record_snapshot_before = own && record_.snapshot_before != 0;
  return words;
}

/// The slot is not written again before this step and the next are committed, so a plain copy is whole.
void UpdateEngine::read_record(std::uint64_t decided, bool to_be_applied) {
  if (decided == memory_.control->load_step.load(std::memory_order_acquire)) {  // nothing was decided yet
    record_ = {};
    record_.step = decided;
    part_ = part_of(record_);
    return;
  }
  sp::DecisionRecord record = memory_.control->record_of(decided);
  if (record.step != decided || !record.intact()) {
    fail("the decision record of step {} is damaged: start again from the last checkpoint", decided);
  }
  part_ = part_of(record);
  if (to_be_applied) check_reductions(record);
  if (part_ == sp::ServerPart::follow)
    record = with_values(record, sp::setting_of(*memory_.control, record.swap_change));
  else if (to_be_applied && part_ == sp::ServerPart::applies)
    check_record(record);
  record_ = record;
}

sp::ServerPart UpdateEngine::part_of(const sp::DecisionRecord& record) const {
  bool swap = record.swap_change != 0 && record.state_epoch != options_.state_epoch;
  std::uint64_t next = swap ? sp::setting_of(*memory_.control, record.swap_change).state_epoch : record.state_epoch;
  return sp::part_of(record, options_.state_epoch, next);
}

Scope UpdateEngine::scope() const { return part_ == sp::ServerPart::applies ? Scope::all : Scope::state; }

void UpdateEngine::check_record(const sp::DecisionRecord& record) const {
  if (record.optimizer_hash != options_.optimizer_hash) {
    fail(
        "step {} was decided for optimizer {:016x} in state epoch {}, but {:016x} is loaded: go on with the run's own "
        "plugin",
        record.step, record.optimizer_hash, record.state_epoch, options_.optimizer_hash);
  }
  bool moe = false;
  for (const auto& parameter : placement_.parameters) moe |= parameter.update == model_spec::UpdateKind::selection_bias;
  if (moe && record.counts_hash != hash64(std::as_bytes(memory_.expert_counts))) {
    fail("the expert counts of step {} are damaged: start again from the last checkpoint", record.step);
  }
}

void UpdateEngine::check_reductions(const sp::DecisionRecord& record) const {
  bool own = part_ == sp::ServerPart::applies, follows = part_ == sp::ServerPart::follow;
  if (memory_.reductions.empty() || (!own && !follows)) return;
  if ((own ? record.reductions_hash : record.swap_reductions_hash) != hash64(std::as_bytes(memory_.reductions)))
    fail("the reductions of step {} are damaged: start again from the last checkpoint", record.step);
}

bool UpdateEngine::perform(const Action& action) {
  switch (action.kind) {
    case UpdateActionKind::await_decision:
      return false;
    case UpdateActionKind::arm_snapshot:
      arm(action.step);
      return true;
    case UpdateActionKind::update:
      return update(action);
    case UpdateActionKind::count:
      count(action);
      return true;
  }
  impossible(__FILE__, __LINE__, "unknown action of an update");
}

bool UpdateEngine::update(const Action& action) {
  if (record_.apply == 0) return true;
  const Span& span = span_update_.spans().at(action.chunk);
  if (awaits_matrices(span, action.step)) return false;
  update_.begin(record_, scope());
  return span_update_.run(span, memory_.words->chunks_done.load(std::memory_order_relaxed));
}

bool UpdateEngine::awaits_matrices(const Span& span, std::uint64_t step) const {
  if (scope() == Scope::state) return false;  // which has no second phase
  auto first = placement_.chunks.begin() + static_cast<std::ptrdiff_t>(span.first);
  auto end = placement_.chunks.begin() + static_cast<std::ptrdiff_t>(span.end);
  bool second = std::any_of(first, end, [](const auto& chunk) { return chunk.phase == placement::Phase::master; });
  return second && memory_.matrices_returned[first->bucket].load(std::memory_order_acquire) != step;
}

void UpdateEngine::arm(std::uint64_t step) {
  std::uint64_t word = memory_.control->snapshot.load(std::memory_order_acquire);
  if (sp::snapshot_step(word) >= step) return;
  if (memory_.control->snapshot.compare_exchange_strong(word, sp::armed_word(step))) {
    os::wake(memory_.control->snapshot);
    log::info("snapshot of step {} armed", step);
  }
}

void UpdateEngine::count(const Action& action) {
  const Span& span = span_update_.spans().at(action.chunk);
  std::uint64_t done = memory_.words->chunks_done.load(std::memory_order_relaxed) + (span.end - span.first);
  memory_.words->chunks_done.store(done, std::memory_order_release);
  if (scope() == Scope::all) {
    publish_buckets(action.step, span.first, span.end);
    publish_matrices(action.step, span.first, span.end);
  }
  if (span.end < placement_.chunks.size()) return;
  os::wake(memory_.words->chunks_done);  // whoever waits on the word waits for a whole step
  images_.report(action.step);
}

/// The buckets whose last chunk is one of from … to - 1 hold `step`; chunk 0 also completes empty ones before it.
void UpdateEngine::publish_buckets(std::uint64_t step, std::uint64_t from, std::uint64_t to) {
  for (std::size_t i = 0; i < bucket_end_.size(); i++) {
    bool complete = bucket_end_[i] <= to && (bucket_end_[i] > from || from == 0);
    if (!complete || memory_.working_copy_ready[i].load(std::memory_order_relaxed) == step) continue;
    os::store_and_wake(memory_.working_copy_ready[i], step);
  }
}

/// The same for the first phases of matrices: the worker may send what the buckets have.
void UpdateEngine::publish_matrices(std::uint64_t step, std::uint64_t from, std::uint64_t to) {
  for (std::size_t i = 0; i < matrices_end_.size(); i++) {
    if (matrices_end_[i] > from && matrices_end_[i] <= to) os::store_and_wake(memory_.matrices_sent[i], step);
  }
}

}  // namespace ganymede::optimizer
