#include "services/worker/engine/job/epoch_engine.h"

#include "common/base/log.h"
#include "common/step_protocol/change.h"
#include "services/worker/engine/job/membership.h"

namespace ganymede::worker {

EpochEngine::EpochEngine(service::Context& context, CommunicatorSource& source, std::uint64_t generation,
                         double formation_seconds, AttemptEnd& end)
    : context_(context),
      source_(source),
      generation_(generation),
      formation_seconds_(formation_seconds),
      end_(end),
      communicators_(context.rank(), context.config().parallel.ranks, formation_seconds,
                     [this](const collectives::Group& group) { return source_.make_control(group); }) {
  end_.guard(&communicators_, nullptr);
}

EpochEngine::~EpochEngine() { end_.guard(nullptr, nullptr); }

void EpochEngine::begin(std::uint64_t pending_step) {
  epoch_ = step_protocol::epoch_in_force(*context_.control().block);
  context_.at(in_words, 0, "forming communicators");
  end_.guard(nullptr, nullptr);
  source_.publish(epoch_);
  communicators_.form(context_.config_of(epoch_), context_.placement_of(epoch_), epoch_, formation_seconds_,
                      [this](const collectives::Group& group) { return source_.make(group); });
  end_.guard(&communicators_, nullptr);
  engine_.emplace(context_, communicators_, generation_, context_.optimizer_hash_of(epoch_));
  end_.guard(&communicators_, &*engine_);
  if (pending_step > 0) engine_->finish_update(pending_step);
}

/// The vote of a step comes after everything else that ranks do together in it, but for `control`, which stays: when a
/// rank is here, no other waits for the communicators that end now.
void EpochEngine::follow(const step_protocol::DecisionRecord& record) {
  if (record.state_epoch == epoch_) return;
  log::info("from step {} on the optimizer of state epoch {} updates", record.step, record.state_epoch);
  end_.guard(nullptr, nullptr);
  engine_.reset();
  communicators_.clear();
  context_.release_epoch(epoch_);
  begin(record.step);
}

}  // namespace ganymede::worker
