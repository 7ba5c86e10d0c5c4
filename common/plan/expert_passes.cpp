#include "common/plan/expert_passes.h"

#include <fmt/format.h>

#include <utility>

namespace ganymede::plan {
namespace {

void use(Operation& operation, std::initializer_list<int> buffers) {
  for (int buffer : buffers) {
    if (buffer >= 0) operation.uses.push_back(buffer);
  }
}

/// Frees the buffers that there are.
void give_up(Operation& operation, std::initializer_list<int*> buffers) {
  for (int* buffer : buffers) {
    if (*buffer >= 0) operation.frees.push_back(std::exchange(*buffer, -1));
  }
}

const char* wire_name(const ExchangeForm& form) { return form.element == 2 ? "bf16" : "fp32"; }

}  // namespace

ExpertPasses::ExpertPasses(Builder& builder, Parameters& parameters, Gradients& gradients, int rows)
    : builder_(builder),
      parameters_(parameters),
      gradients_(gradients),
      form_(exchange_form(builder.config)),
      bytes_(exchange_bytes(builder.config, builder.placement.expert_place)),
      rows_(static_cast<std::size_t>(rows)) {}

void ExpertPasses::take_rows(int first, int end) {
  first_ = first;
  end_ = end;
}

int ExpertPasses::take(Operation& operation, Travel travel, bool backward) {
  int taken = builder_.new_buffer(
      BufferKind::exchange, fmt::format("{} layer.{} row {}", name(travel), operation.layer, operation.row),
      travel_layout(form_, travel, backward).bytes, -1, operation.layer, operation.row, travel);
  operation.takes.push_back(taken);
  return taken;
}

void ExpertPasses::take_own(Operation& operation) {
  Row& row = at(operation.row);
  (form_.even ? row.received : row.own) = take(operation, form_.even ? Travel::received : Travel::own);
}

void ExpertPasses::give_back(Operation& operation, int row) {
  for (int buffer : std::exchange(at(row).spent, {})) operation.frees.push_back(buffer);
}

void ExpertPasses::forward(int layer, std::vector<int>& input, std::vector<SavedBuffers>& saved, bool keep) {
  for (int slot = first_; slot <= end_; ++slot) {
    if (slot < end_) {
      forward_attention(layer, slot, input[slot], saved[slot], keep);
      dispatch(layer, slot, saved[slot], -1);
    }
    if (slot == first_) continue;
    forward_experts(layer, slot - 1, saved[slot - 1]);
    forward_combine(layer, slot - 1, input[slot - 1], saved[slot - 1]);
  }
}

void ExpertPasses::forward_attention(int layer, int row, int input, SavedBuffers& saved, bool keep) {
  Operation forward = compute(OperationKind::forward, Part::attention, layer, row);
  parameters_.read(forward, layer);
  saved = {.input = input};
  (keep ? forward.uses : forward.frees).push_back(input);
  if (keep) keep_for_backward(builder_, forward, saved);
  if (!keep || builder_.config.recompute != config::Recompute::none) {
    at(row).middle = builder_.new_buffer(BufferKind::scratch, fmt::format("middle layer.{} row {}", layer, row),
                                         hidden_bytes(builder_.config), -1, layer, row);
    forward.takes.push_back(at(row).middle);
    take_own(forward);
  }
  give_back(forward, row);
  builder_.add(std::move(forward));
}

/// The row's tokens go to their experts, in backward (`gradient` ≥ 0) with their gradients; what was received in
/// forward and kept is not sent again.
void ExpertPasses::dispatch(int layer, int row, const SavedBuffers& saved, int gradient) {
  bool backward = gradient >= 0;
  Operation dispatch{.kind = OperationKind::dispatch, .lane = Lane::exchange, .layer = layer, .row = row};
  dispatch.bytes = backward ? bytes_.dispatch_backward : bytes_.dispatch_forward;
  dispatch.wire = wire_name(form_);
  Row& buffers = at(row);
  use(dispatch, {buffers.own, buffers.received, saved.activations, gradient});
  if (!form_.even) {
    buffers.staged = take(dispatch, Travel::staged);
    buffers.received = take(dispatch, Travel::received);
  }
  if (backward) buffers.gradients = take(dispatch, Travel::gradients);
  builder_.add(std::move(dispatch));
}

void ExpertPasses::forward_experts(int layer, int row, const SavedBuffers& saved) {
  Operation forward = compute(OperationKind::forward, Part::experts, layer, row);
  parameters_.read(forward, layer);
  Row& buffers = at(row);
  use(forward, {buffers.received, saved.activations});
  if (buffers.received < 0) buffers.results = take(forward, Travel::results);  // what was received is kept
  give_up(forward, {&buffers.own, &buffers.staged});
  if (row >= first_ + 2) give_back(forward, row - 2);
  builder_.add(std::move(forward));
}

void ExpertPasses::forward_combine(int layer, int row, int& input, const SavedBuffers& saved) {
  Operation combine{.kind = OperationKind::combine, .lane = Lane::exchange, .layer = layer, .row = row};
  combine.bytes = bytes_.combine_forward;
  combine.wire = wire_name(form_);
  Row& buffers = at(row);
  buffers.returned = take(combine, Travel::returned);
  use(combine, {buffers.middle, buffers.received, buffers.results, saved.activations});
  input = builder_.new_buffer(BufferKind::saved_input, fmt::format("input layer.{} row {}", layer + 1, row),
                              hidden_bytes(builder_.config), -1, layer + 1, row);
  combine.takes.push_back(input);
  for (int* buffer : {&buffers.middle, &buffers.received, &buffers.results, &buffers.returned}) {
    if (*buffer >= 0) buffers.spent.push_back(std::exchange(*buffer, -1));
  }
  builder_.add(std::move(combine));
}

void ExpertPasses::backward(int layer, const std::vector<int>& gradient, const std::vector<SavedBuffers>& saved) {
  for (int slot = first_; slot <= end_ + 1; ++slot) {
    if (slot < end_) {
      if (builder_.config.recompute != config::Recompute::none) recompute(layer, slot, saved[slot]);
      dispatch(layer, slot, saved[slot], gradient[slot]);
    }
    if (slot > first_ && slot <= end_) {
      backward_experts(layer, slot - 1, saved[slot - 1]);
      backward_combine(layer, slot - 1);
    }
    if (slot >= first_ + 2) backward_attention(layer, slot - 2, gradient[slot - 2], saved[slot - 2]);
  }
}

void ExpertPasses::recompute(int layer, int row, const SavedBuffers& saved) {
  Operation recompute = compute(OperationKind::recompute, Part::attention, layer, row);
  parameters_.read(recompute, layer);
  use(recompute, {saved.input, saved.indices, saved.activations});
  take_own(recompute);
  builder_.add(std::move(recompute));
}

void ExpertPasses::backward_experts(int layer, int row, const SavedBuffers& saved) {
  Operation backward = compute(OperationKind::backward, Part::experts, layer, row);
  parameters_.read(backward, layer);
  gradients_.write(backward, layer);
  Row& buffers = at(row);
  use(backward, {buffers.gradients, saved.activations});
  give_up(backward, {&buffers.own, &buffers.staged, &buffers.received});
  builder_.add(std::move(backward));
}

void ExpertPasses::backward_combine(int layer, int row) {
  Operation combine{.kind = OperationKind::combine, .lane = Lane::exchange, .layer = layer, .row = row};
  combine.bytes = bytes_.combine_backward;
  combine.wire = wire_name(form_);
  Row& buffers = at(row);
  use(combine, {buffers.gradients});
  buffers.returned = take(combine, Travel::returned, true);
  buffers.combined = take(combine, Travel::combined);
  builder_.add(std::move(combine));
}

void ExpertPasses::backward_attention(int layer, int row, int gradient, const SavedBuffers& saved) {
  Operation backward = compute(OperationKind::backward, Part::attention, layer, row);
  parameters_.read(backward, layer);
  gradients_.write(backward, layer);
  use(backward, {gradient});
  Row& buffers = at(row);
  give_up(backward, {&buffers.gradients, &buffers.returned, &buffers.combined});
  for (int buffer : {saved.input, saved.indices, saved.activations}) {
    if (buffer >= 0) backward.frees.push_back(buffer);
  }
  builder_.add(std::move(backward));
}

}  // namespace ganymede::plan
