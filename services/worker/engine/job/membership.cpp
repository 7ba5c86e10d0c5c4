#include "services/worker/engine/job/membership.h"

#include <algorithm>
#include <vector>

#include "common/base/error.h"
#include "common/base/log.h"
#include "common/step_protocol/change.h"
#include "common/step_protocol/worker_machine.h"
#include "services/worker/engine/protocol_operations.h"
#include "services/worker/engine/surroundings.h"

namespace ganymede::worker {
namespace {

using step_protocol::DecisionRecord;
using step_protocol::ExchangeSlot;
using step_protocol::Resolution;
using step_protocol::ResolutionKind;

constexpr double answer_seconds = 60;  // of a launcher that may just be starting again

template <class T>
std::vector<T> gather_all(collectives::Communicator& control, std::span<const T> mine, Deadline deadline) {
  std::vector<T> all(mine.size() * static_cast<std::size_t>(control.size()));
  std::vector<std::size_t> offsets(static_cast<std::size_t>(control.size()) + 1);
  for (std::size_t i = 0; i < offsets.size(); ++i) offsets[i] = i * mine.size_bytes();
  control.all_gather(std::as_bytes(mine), std::as_writable_bytes(std::span(all)), offsets)->wait(deadline);
  return all;
}

std::uint64_t epoch_in_force(service::Context& context) {
  return step_protocol::epoch_in_force(*context.control().block);
}

const step_protocol::Word& chunks_done(service::Context& context) {
  return service::epoch_control(context, epoch_in_force(context)).words->chunks_done;
}

std::uint64_t committed(service::Context& context) {
  return step_protocol::committed_step(chunks_done(context).load(std::memory_order_acquire),
                                       context.placement_of(epoch_in_force(context)).chunks.size());
}

ExchangeSlot own_slot(service::Context& context, std::uint64_t generation) {
  const step_protocol::ControlBlock& block = *context.control().block;
  ExchangeSlot slot;
  slot.generation = generation;
  slot.incarnation = block.incarnation.load(std::memory_order_acquire);
  slot.state_intact = block.state_ready.load(std::memory_order_acquire);
  slot.decided_step = block.decided_step.load(std::memory_order_acquire);
  slot.committed_step = committed(context);
  if (slot.decided_step != block.load_step.load(std::memory_order_acquire)) {
    slot.record = block.record_of(slot.decided_step);
  }
  return slot;
}

/// The reductions of the record's step, from a rank that has decided it.
std::vector<EpochReductions> gather_reductions(service::Context& context, collectives::Communicator& control,
                                               const ExchangeSlot& source, std::size_t rank, Deadline deadline) {
  std::vector<EpochReductions> epochs = reductions_under(context, source.record);
  for (EpochReductions& epoch : epochs) {
    auto all = gather_all<double>(control, epoch.shared, deadline);
    auto first = all.begin() + static_cast<std::ptrdiff_t>(rank * epoch.shared.size());
    epoch.values.assign(first, first + static_cast<std::ptrdiff_t>(epoch.shared.size()));
  }
  return epochs;
}

bool are_of(const DecisionRecord& record, std::span<const std::int64_t> counts,
            const std::vector<EpochReductions>& reductions) {
  DecisionRecord sealed = record;
  seal(sealed, counts, reductions);
  return sealed.checksum == record.checksum;
}

void adopt(service::Context& context, const ExchangeSlot& source, std::span<const std::int64_t> counts,
           const std::vector<EpochReductions>& reductions) {
  service::Control& control = context.control();
  if (control.block->decided_step.load() == source.decided_step) return;
  if (!are_of(source.record, counts, reductions)) {
    fail(
        "The expert counts or reductions of step {} were damaged on their way from another rank: start the run again "
        "from its last "
        "checkpoint",
        source.decided_step);
  }
  publish(control, source.record, counts, reductions);
  log::info("adopted the decision of step {}", source.decided_step);
}

}  // namespace

std::optional<std::uint64_t> join_next_generation(service::Context& context, Deadline deadline, const char* why) {
  step_protocol::ControlBlock& block = *context.control().block;
  std::uint64_t joined = block.joined_generation.load(std::memory_order_acquire);
  if (!context.wait(
          block.generation, [joined](std::uint64_t now) { return now > joined; }, {}, deadline, why)) {
    return std::nullopt;
  }
  std::uint64_t generation = block.generation.load(std::memory_order_acquire);
  block.joined_generation.store(generation, std::memory_order_release);
  return generation;
}

std::optional<std::uint64_t> rejoin(service::Context& context, double seconds, const std::function<void()>& ask) {
  step_protocol::ControlBlock& block = *context.control().block;
  std::uint64_t joined = block.joined_generation.load(std::memory_order_acquire);
  context.at(in_words, 0, "waiting for another generation");
  Deadline notice = Deadline::after_seconds(seconds);
  auto another = [joined](std::uint64_t now) { return now > joined; };
  bool begun = context.wait(
      block.generation, another, [&] { return notice.passed(); }, Deadline::after_seconds(seconds + answer_seconds),
      "another generation");
  if (!begun && !context.finishing()) ask();
  return join_next_generation(context, Deadline::after_seconds(answer_seconds), "another generation");
}

void report_failed_generation(service::Context& context, std::uint64_t generation, const std::string& cause) {
  context.launcher_client()->call(
      [&](flatbuffers::FlatBufferBuilder& builder) {
        return msg::Message::body(
            fbs::CreateGenerationFailed(builder, generation, context.rank(), builder.CreateString(cause)));
      },
      Deadline::after_seconds(answer_seconds));
}

Beginning exchange(service::Context& context, Communicators& communicators, std::uint64_t generation,
                   Deadline deadline) {
  ExchangeSlot own = own_slot(context, generation);
  auto slots = gather_all<ExchangeSlot>(communicators.control(), std::span<const ExchangeSlot>(&own, 1), deadline);
  Resolution resolution = step_protocol::resolve(slots);
  // Rule 8: the launcher takes all ranks to the checkpoint, under new segments.
  if (resolution.kind == ResolutionKind::from_checkpoint)
    throw Error(ExitCode::can_go_on, fmt::format("The ranks' states do not belong together ({}).", resolution.reason));
  if (resolution.kind == ResolutionKind::diverged) {
    fail("The ranks have diverged ({}): start the same command again, it goes on from the last checkpoint",
         resolution.reason);
  }
  if (resolution.kind == ResolutionKind::adopt) {
    std::span<const std::int64_t> counts = context.control().expert_counts;
    auto all = gather_all<std::int64_t>(communicators.control(), counts, deadline);
    auto source = static_cast<std::size_t>(resolution.source);
    auto reductions = gather_reductions(context, communicators.control(), slots[source], source, deadline);
    adopt(context, slots[source], std::span<const std::int64_t>(all).subspan(source * counts.size(), counts.size()),
          reductions);
  }
  log::info("generation {}: going on with step {}", generation, resolution.step);
  context.control().block->formed_generation.store(generation, std::memory_order_release);
  auto behind = [&](const ExchangeSlot& slot) { return slot.committed_step + 1 < resolution.step; };
  return {resolution.step, std::any_of(slots.begin(), slots.end(), behind)};
}

void leave_together(service::Context& context, Communicators& communicators, std::uint64_t step,
                    const std::function<bool()>& give_up, double timeout_seconds) {
  std::uint64_t chunks = context.placement_of(epoch_in_force(context)).chunks.size();
  bool came = context.wait(
      chunks_done(context), [&](std::uint64_t done) { return step_protocol::committed_step(done, chunks) >= step; },
      give_up, Deadline::after_seconds(timeout_seconds), "the update of the last step");
  if (!came) throw Interrupted("the wait for the update of the last step was ended");
  std::uint64_t own = committed(context);
  auto all = gather_all<std::uint64_t>(communicators.control(), std::span<const std::uint64_t>(&own, 1),
                                       Deadline::after_seconds(timeout_seconds));
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank] != own)
      fail(
          "Rank {} ends with step {} and this rank with step {}: start the same command again, it goes on from the "
          "last checkpoint",
          rank, all[rank], own);
  }
}

}  // namespace ganymede::worker
