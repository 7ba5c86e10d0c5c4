#pragma once

#include <optional>

#include "services/worker/engine/job/attempt_end.h"
#include "services/worker/engine/job/communicator_source.h"

namespace ganymede::worker {

/// The communicators of one generation with the engine of the state epoch in force. Where a step names another epoch
/// (step_protocol/swap.h) they are formed anew within the generation, which all ranks do after the same step. What
/// there is, `end` can end at any time.
class EpochEngine {
 public:
  /// Forms the communicator `control` alone: which epoch is in force, the exchange of the generation says. All must
  /// outlive it. Throws CollectiveError.
  EpochEngine(service::Context& context, CommunicatorSource& source, std::uint64_t generation, double formation_seconds,
              AttemptEnd& end);
  ~EpochEngine();
  EpochEngine(const EpochEngine&) = delete;
  EpochEngine& operator=(const EpochEngine&) = delete;

  /// The engine of the epoch in force; then what is left of the update of a step (0: of none) is done on all ranks.
  /// Throws like `Engine`, and CollectiveError.
  void begin(std::uint64_t pending_step);
  /// After the engine's step with this record: goes over to the record's epoch, if it is another one.
  void follow(const step_protocol::DecisionRecord& record);

  Engine* operator->() { return &*engine_; }
  Communicators& communicators() { return communicators_; }

 private:
  service::Context& context_;
  CommunicatorSource& source_;
  std::uint64_t generation_;
  double formation_seconds_;
  AttemptEnd& end_;
  Communicators communicators_;
  std::uint64_t epoch_ = 0;
  std::optional<Engine> engine_;
};

}  // namespace ganymede::worker
