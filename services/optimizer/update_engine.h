#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "common/placement/placement.h"
#include "common/step_protocol/swap.h"
#include "common/step_protocol/update_machine.h"
#include "services/optimizer/before_images.h"
#include "services/optimizer/cell_memory.h"
#include "services/optimizer/span_update.h"
#include "services/optimizer/tile_update.h"

namespace ganymede::optimizer {

struct EngineOptions {
  double bias_update_rate = 0;
  std::uint64_t optimizer_hash = 0;  // of the loaded plugin; records must name the same
  std::uint64_t state_epoch = 0;     // that this server updates
  int threads = 1;                   // that share a span
  double side_wait_seconds = 120;    // with a full side buffer, before the snapshot is cancelled
  std::function<bool()> finishing = [] { return false; };
  std::function<void()> waits_for_reader = [] {};    // of a snapshot, with a full side buffer; any thread of the team
  std::function<void(const TileEvent&)> observed{};  // for tests, see SpanUpdate
};

/// What `advance` did.
struct Advance {
  step_protocol::UpdateAction action;
  bool carried_out = false;  // false: nothing to do yet, or finishing; a span with a second phase of matrices is not
                             // updated before `matrices_returned` of its bucket is the action's step
};

/// Carries out the optimizer server's half of the protocol on the memory of one cell, one action at a time. Everything
/// that must survive lies in that memory: a new engine on the same memory goes on to the same bits, whichever
/// instruction the old one died at. Used by one thread.
class UpdateEngine {
 public:
  /// References must outlive the engine. Publishes again what the counted chunks say is published.
  UpdateEngine(const placement::Placement& placement, Tables tables, const CellMemory& memory, EngineOptions options);

  /// The next action, carried out. While another epoch is in force and this one is being warmed up, a step's action
  /// brings forward the state alone. Throws Error when the record is torn or names another optimizer, or when the
  /// plugin fails.
  Advance advance();
  /// The span that is to be updated next, or that is being updated: whoever takes over finds it torn perhaps.
  const Span& under_way() const;
  /// The newest decided step has nothing to do with this epoch: another one's server took over, or a swap was given up.
  bool superseded() const { return part_ == step_protocol::ServerPart::none; }

 private:
  using Action = step_protocol::UpdateAction;

  step_protocol::UpdateWords read_words();
  void read_record(std::uint64_t decided, bool to_be_applied);
  void check_record(const step_protocol::DecisionRecord& record) const;
  void check_reductions(const step_protocol::DecisionRecord& record) const;
  step_protocol::ServerPart part_of(const step_protocol::DecisionRecord& record) const;
  Scope scope() const;
  bool perform(const Action& action);
  bool update(const Action& action);
  bool awaits_matrices(const Span& span, std::uint64_t step) const;
  void arm(std::uint64_t step);
  void count(const Action& action);
  void publish_buckets(std::uint64_t step, std::uint64_t from, std::uint64_t to);
  void publish_matrices(std::uint64_t step, std::uint64_t from, std::uint64_t to);

  const placement::Placement& placement_;
  const CellMemory& memory_;
  EngineOptions options_;
  TileUpdate update_;
  BeforeImages images_;
  SpanUpdate span_update_;
  std::vector<std::uint64_t> bucket_end_;    // per bucket: chunks of a step up to and with its last one
  std::vector<std::uint64_t> matrices_end_;  // … its last one in the first phase of matrices; 0: none
  step_protocol::UpdateState state_;
  step_protocol::DecisionRecord record_;  // of the decided step, with the values that this epoch follows
  step_protocol::ServerPart part_ = step_protocol::ServerPart::applies;
};

}  // namespace ganymede::optimizer
