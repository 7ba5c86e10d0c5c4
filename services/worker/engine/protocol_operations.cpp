#include "services/worker/engine/protocol_operations.h"

#include <algorithm>
#include <cmath>

#include "common/base/error.h"
#include "common/base/hash.h"
#include "common/base/text.h"
#include "common/os/futex.h"
#include "common/service/run_directory.h"
#include "common/step_protocol/snapshot_machine.h"
#include "common/step_protocol/snapshot_statistics.h"
#include "services/worker/engine/gradient_norm.h"
#include "services/worker/engine/schedule.h"

namespace ganymede::worker {

using plan::Operation;
using plan::OperationKind;
using step_protocol::DecisionRecord;
using step_protocol::Vote;

void ProtocolOperations::install(OperationTable& table) {
  bool train = kind_ != plan::PlanKind::validate;
  table[OperationKind::wait_batch] = [this](const Operation&, int) { wait_batch(); };
  table[OperationKind::store_gradients] = [this](const Operation& o, int) { store_gradients(o); };
  table[OperationKind::accumulate_norm] = [this](const Operation& o, int) {
    add_squares(bench_.placement, o.bucket, bench_.cell.gradients, bench_.pass.norm_squared,
                bench_.pass.reductions.squares);
  };
  table[OperationKind::wait_update] = [this](const Operation&, int) { wait_update(); };
  table[OperationKind::vote] = [this, train](const Operation&, int) { train ? vote() : vote_on_validation(); };
  table[OperationKind::decide] = [this](const Operation&, int) { decide(); };
}

void ProtocolOperations::install_first_pass(OperationTable& table) {
  auto nothing = [](const Operation&, int) {};
  for (OperationKind kind :
       {OperationKind::decide, OperationKind::update_send, OperationKind::orthogonalise, OperationKind::update_return})
    table[kind] = nothing;
  table[OperationKind::vote] = [this](const Operation&, int) { meet(); };
}

void ProtocolOperations::wait_batch() {
  PassState& pass = bench_.pass;
  const Batches& batches = *pass.batches;
  bool train = kind_ != plan::PlanKind::validate;
  if (train) await_standby();
  bench_.surroundings.wait(
      WaitKind::data, batches.words[pass.slot],
      [&](std::uint64_t value) { return train ? value == pass.step : value != step_protocol::never; },
      "a batch from the data server");
  for (int r = 0; r < batches.rows; ++r) pass.rows.push_back(batches.row(pass.slot, r));
  if (!train) return;
  pass.loss_tokens = batches.loss_tokens(pass.slot);
  if (pass.loss_tokens == 0) {
    fail("step {} has no token to learn from: the dataset's rows are empty; pack it again with `ganymede data pack`",
         pass.step);
  }
}

/// The standby server of a swap reads the gradients that this step overwrites. One that does not come costs the swap,
/// not the run: this rank refuses it with its vote.
void ProtocolOperations::await_standby() {
  step_protocol::ControlBlock& block = *bench_.cell.control.block;
  const DecisionRecord previous = previous_record();
  if (previous.swap_change == 0) return;
  service::Context& context = bench_.surroundings.context();
  std::uint64_t epoch = step_protocol::setting_of(block, previous.swap_change).state_epoch;
  std::uint64_t chunks = context.placement_of(epoch).chunks.size();
  auto refused = [&] { return block.refused_change.load(std::memory_order_acquire) >= previous.swap_change; };
  bool followed = bench_.surroundings.wait_a_while(
      WaitKind::update, service::epoch_control(context, epoch).words->chunks_done,
      [&](std::uint64_t done) { return refused() || step_protocol::committed_step(done, chunks) >= previous.step; },
      bench_.config.launch.collective_timeout_seconds / 2, "the standby optimizer server");
  if (!followed) step_protocol::refuse(block, previous.swap_change);
}

void ProtocolOperations::store_gradients(const Operation& operation) {
  if (PassHashes& hashes = bench_.pass.hashes; hashes.wanted()) {
    const placement::Bucket& bucket = bench_.placement.buckets[operation.bucket];
    auto held = bench_.cell.gradients.subspan(static_cast<std::size_t>(bucket.shard_offset),
                                              static_cast<std::size_t>(bucket.shard_elements()));
    add(plan::in_place(bucket) && bench_.placement.replicas == 1 ? hashes.gradients : hashes.sums, operation.bucket,
        std::as_bytes(held));
  }
  os::store_and_wake(bench_.cell.control.gradients_ready[operation.bucket],
                     step_protocol::gradients_ready_word(bench_.pass.generation, bench_.pass.step));
}

/// Rule 6: this rank votes only when its own cell has committed the step before.
void ProtocolOperations::wait_update() {
  const PassState& pass = bench_.pass;
  std::uint64_t chunks = bench_.placement.chunks.size();
  std::uint64_t committed = pass.step - 1;
  bench_.surroundings.wait(
      WaitKind::update, bench_.cell.epoch.words->chunks_done,
      [&](std::uint64_t done) { return step_protocol::committed_step(done, chunks) >= committed; },
      "the update of the step before");
}

namespace {

/// Changes while a snapshot of the cell is being written.
std::uint64_t snapshot_progress(const service::Control& control) {
  const auto& service = control.services[static_cast<std::size_t>(service::Kind::checkpoint)];
  return control.block->snapshot.load(std::memory_order_acquire) + service.progress.load(std::memory_order_acquire);
}

/// Seconds without progress after which a snapshot is stuck: long after the launcher has killed a checkpoint service
/// that stands still, and its successor has cancelled what it left.
double snapshot_patience(const config::Launch& launch) {
  return 2 * std::max(launch.heartbeat_timeout_seconds, launch.collective_timeout_seconds);
}

}  // namespace

/// A disk may be slow, so this lasts as long as the snapshots make progress. The ranks meet several times within the
/// timeout of a collective: whoever is ready sees that the others are still there.
void ProtocolOperations::await_idle_snapshots() {
  const config::Launch& launch = bench_.config.launch;
  const service::Control& control = bench_.cell.control;
  std::uint64_t seen = snapshot_progress(control);
  Clock::time_point moved = Clock::now();
  for (std::int64_t busy = 1; busy > 0;) {
    bench_.surroundings.context().at(static_cast<std::uint64_t>(OperationKind::wait_update), 0,
                                     "waiting for the snapshots that are under way");
    bool idle = bench_.surroundings.wait_a_while(
        WaitKind::update, control.block->snapshot, [](std::uint64_t word) { return !step_protocol::is_armed(word); },
        launch.collective_timeout_seconds / 4, "the snapshot that is under way");
    if (std::uint64_t now = snapshot_progress(control); idle || now != seen) {
      seen = now;
      moved = Clock::now();
    }
    if (seconds_since(moved) > snapshot_patience(launch)) {
      fail("the snapshot of step {} is stuck: the checkpoint service made no progress for {}; see {}/checkpoint.{}.log",
           step_protocol::snapshot_step(control.block->snapshot.load()), human_seconds(seconds_since(moved)),
           service::log_folder, bench_.placement.rank);
    }
    busy = idle ? 0 : 1;
    bench_.surroundings.wait(bench_.communicators.control().all_reduce(std::span(&busy, 1)));
  }
}

DecisionRecord previous_record(const step_protocol::ControlBlock& block, std::uint64_t step) {
  const DecisionRecord& record = block.record_of(step - 1);
  return record.step == step - 1 ? record : DecisionRecord{};
}

DecisionRecord ProtocolOperations::previous_record() const {
  return worker::previous_record(*bench_.cell.control.block, bench_.pass.step);
}

Vote ProtocolOperations::own_vote() {
  const step_protocol::ControlBlock& block = *bench_.cell.control.block;
  PassState& pass = bench_.pass;
  Vote vote;
  vote.generation = pass.generation;
  vote.step = pass.step;
  for (double loss : pass.row_loss) vote.loss_sum += loss;
  vote.loss_tokens = pass.loss_tokens;
  vote.norm_squared = pass.norm_squared;
  vote.norm_squared.normalise();
  vote.non_finite =
      !std::isfinite(vote.loss_sum) || pass.norm_squared.non_finite > 0 || pass.reductions.has_non_finite_logit();
  vote.snapshot_idle = !step_protocol::is_armed(block.snapshot.load(std::memory_order_acquire));
  vote.stop_request = block.stop_request.load(std::memory_order_acquire);
  vote.snapshot_request = block.snapshot_request.load(std::memory_order_acquire);
  vote.served_request = block.served_request.load(std::memory_order_acquire);
  vote.change_number = pass.offered.number;
  vote.refused_change = block.refused_change.load(std::memory_order_acquire);
  vote.previous_record = previous_record().checksum;
  if (pass.hashes.wanted()) vote.replay_difference = word_of(difference(pass.first_hashes, pass.hashes));
  return vote;
}

/// For the last step, of the run or of an optimizer, a rank votes only when no snapshot is under way, on all ranks.
void ProtocolOperations::vote() {
  PassState& pass = bench_.pass;
  pass.offered = step_protocol::offered_setting(*bench_.cell.control.block);
  pass.policy.swap = {pass.offered.state_epoch, pass.offered.warm_steps};
  if (!step_protocol::may_vote(pass.step, pass.step - 1, false, previous_record(), pass.policy)) await_idle_snapshots();
  collectives::Communicator& control = bench_.communicators.control();
  Vote own = own_vote();
  pass.votes.resize(static_cast<std::size_t>(control.size()));
  std::vector<std::size_t> offsets(pass.votes.size() + 1);
  for (std::size_t i = 0; i < offsets.size(); ++i) offsets[i] = i * sizeof(Vote);
  bench_.surroundings.wait(
      control.all_gather(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(pass.votes)), offsets));
  refuse_differences();
  bench_.surroundings.wait(control.all_reduce(pass.expert_counts));
  pass.reductions.reduce(control, bench_.surroundings);
}

/// All ranks have the same votes: none decides a step that came out differently on one of them.
void ProtocolOperations::refuse_differences() {
  const std::vector<Vote>& votes = bench_.pass.votes;
  if (std::ranges::all_of(votes, [](const Vote& vote) { return vote.replay_difference == 0; })) return;
  HostName own = this_host();
  std::vector<HostName> hosts(votes.size());
  std::vector<std::size_t> offsets(hosts.size() + 1);
  for (std::size_t i = 0; i < offsets.size(); ++i) offsets[i] = i * sizeof(HostName);
  bench_.surroundings.wait(bench_.communicators.control().all_gather(
      std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(hosts)), offsets));
  std::string text = describe_differences(votes, hosts, bench_.placement);
  try {
    meet();
  } catch (const std::exception&) {  // the first to fail ends the others' wait, when all have what they need
  }
  fail("{}", text);
}

/// In place of the vote where a step is computed twice: whoever begins again overwrites what others may still read.
void ProtocolOperations::meet() {
  std::int64_t ranks = 1;
  bench_.surroundings.wait(bench_.communicators.control().all_reduce(std::span(&ranks, 1)));
}

void ProtocolOperations::vote_on_validation() {
  struct Share {
    double loss_sum = 0;
    std::uint64_t loss_tokens = 0;
  };
  PassState& pass = bench_.pass;
  collectives::Communicator& control = bench_.communicators.control();
  Share own{0, pass.batches->own_loss_tokens(pass.slot)};
  for (double loss : pass.row_loss) own.loss_sum += loss;
  std::vector<Share> shares(static_cast<std::size_t>(control.size()));
  std::vector<std::size_t> offsets(shares.size() + 1);
  for (std::size_t i = 0; i < offsets.size(); ++i) offsets[i] = i * sizeof(Share);
  bench_.surroundings.wait(
      control.all_gather(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(shares)), offsets));
  Share all;
  for (const Share& share : shares) {
    all.loss_sum += share.loss_sum;
    all.loss_tokens += share.loss_tokens;
  }
  if (all.loss_tokens == 0)
    fail("The held-out rows have no token to predict: pack the dataset with a larger validation_fraction");
  pass.loss_tokens = all.loss_tokens;
  pass.loss = all.loss_sum / static_cast<double>(all.loss_tokens);
}

void seal(DecisionRecord& record, std::span<const std::int64_t> expert_counts,
          std::span<const EpochReductions> reductions) {
  record.counts_hash = hash64(std::as_bytes(expert_counts));
  for (const EpochReductions& epoch : reductions) {
    std::uint64_t hash = hash64(std::as_bytes(std::span(epoch.values)));
    if (epoch.epoch == record.state_epoch) record.reductions_hash = hash;
    if (epoch.epoch != record.state_epoch && record.swap_change != 0) record.swap_reductions_hash = hash;
  }
  record.checksum = record.compute_checksum();
}

void publish(const service::Control& control, const DecisionRecord& record, std::span<const std::int64_t> expert_counts,
             std::span<const EpochReductions> reductions) {
  for (const EpochReductions& epoch : reductions) std::ranges::copy(epoch.values, epoch.shared.begin());
  std::copy(expert_counts.begin(), expert_counts.end(), control.expert_counts.begin());
  control.block->record_of(record.step) = record;
  step_protocol::keep_statistics(*control.block, record);
  os::store_and_wake(control.block->decided_step, record.step);
}

/// Rule 16: a rank has both settings that it may be, see change.h. With another state epoch a step follows its
/// configuration from here on.
step_protocol::StepPolicy ProtocolOperations::decided_policy(const DecisionRecord& previous) const {
  const PassState& pass = bench_.pass;
  const step_protocol::ControlBlock& block = *bench_.cell.control.block;
  step_protocol::SwapDecision decided = step_protocol::decided_change(pass.votes, previous, pass.policy.swap);
  bool offered = decided.change_number == pass.offered.number;
  step_protocol::Setting setting = offered ? pass.offered : step_protocol::setting_of(block, decided.change_number);
  if (decided.state_epoch == bench_.cell.epoch_number) return following(pass.policy, setting, bench_.config, pass.step);
  service::Context& context = bench_.surroundings.context();
  const config::Config& config = context.config_of(decided.state_epoch);
  auto policy = policy_of(config, block, context.optimizer_hash_of(decided.state_epoch));
  policy.swap = pass.policy.swap;
  return following(policy, setting, config, pass.step);
}

void ProtocolOperations::decide() {
  PassState& pass = bench_.pass;
  if (bench_.surroundings.interrupted()) throw Interrupted("the attempt ended before its decision");
  DecisionRecord previous = previous_record();
  DecisionRecord record = step_protocol::decide(pass.votes, previous, decided_policy(previous));
  seal(record, pass.expert_counts, pass.reductions.epochs);
  publish(bench_.cell.control, record, pass.expert_counts, pass.reductions.epochs);
  pass.record = record;
  if (record.snapshot_after == 0) return;
  std::uint64_t served = 0;
  for (const Vote& vote : pass.votes) served = std::max(served, vote.snapshot_request);
  bench_.cell.control.block->served_request.store(served, std::memory_order_release);
}

}  // namespace ganymede::worker
