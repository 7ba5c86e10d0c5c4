#include "tests/perf/optimizer/large_cell.h"

#include <algorithm>
#include <array>

#include "tests/support/builtin_facts.h"

namespace ganymede::optimizer {

LargeCell::LargeCell(int millions, int threads)
    : control_(std::make_unique<step_protocol::ControlBlock>()), words_(std::make_unique<step_protocol::EpochWords>()) {
  config_.wire.dense_gather = config::ParameterWire::bf16;
  config_.optimizer.threads = threads;
  config_.model.layers = 1;
  config_.model.experts = 0;
  config_.model.hidden = 1024;
  config_.model.vocabulary = millions * 512;  // embedding and head
  placement = placement::build(config_, 0, builtin_facts());
  auto elements = static_cast<std::size_t>(placement.shard_elements);
  gradients_.assign(elements, 1e-3f);
  master_.resize(elements);
  first_.resize(elements);
  second_.resize(elements);
  redo_.resize(static_cast<std::size_t>(placement.strips) * 3 * placement::tile_elements);
  strips_ = std::vector<step_protocol::StripWords>(static_cast<std::size_t>(placement.strips));
  wire::WorkingForm form = wire::working_form(config_, placement);
  working_.resize(static_cast<std::size_t>(form.bytes));
  ready_ = std::vector<step_protocol::Word>(placement.buckets.size());
  marks_ = std::vector<step_protocol::Word>(placement.chunks.size());
  flags_ = std::vector<step_protocol::Word>(placement.chunks.size());
  memory = {control_.get(), words_.get(), ready_, {},     gradients_, master_, {first_, second_},
            redo_,          working_,     form,   marks_, flags_,     {}};
  memory.strips = strips_;
}

void LargeCell::decide(double clip_factor) {
  std::uint64_t step = control_->decided_step.load() + 1;
  step_protocol::DecisionRecord record;
  record.step = record.updates = step;
  record.clip_factor = clip_factor;
  record.lr = 1e-3;
  record.weight_decay = 0.1;
  record.group_count = 1;
  record.groups[0] = {1e-3, 0.1};
  record.hyper_count = 3;  // of AdamW: beta1, beta2, eps
  std::ranges::copy(std::array{0.9, 0.95, 1e-8}, record.hyper);
  record.checksum = record.compute_checksum();
  control_->record_of(step) = record;
  control_->decided_step.store(step);
}

}  // namespace ganymede::optimizer
