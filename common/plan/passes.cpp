#include "common/plan/passes.h"

#include <fmt/format.h>

#include <utility>

namespace ganymede::plan {
namespace {

Operation compute(OperationKind kind, int layer, int row) {
  return Operation{.kind = kind, .lane = Lane::compute, .layer = layer, .row = row};
}

}  // namespace

Passes::Passes(Builder& builder, Parameters& parameters, Gradients& gradients, int rows)
    : builder_(builder),
      parameters_(parameters),
      gradients_(gradients),
      hidden_(hidden_bytes(builder.config)),
      offloaded_(offloaded_layers(builder.config)),
      recompute_(builder.config.recompute != config::Recompute::none),
      input_(rows, -1),
      grad_(rows, -1),
      saved_(builder.layers, std::vector<SavedBuffers>(rows)),
      experts_(builder, parameters, gradients, rows) {}

void Passes::take_rows(int first, int end) {
  first_ = first;
  end_ = end;
  experts_.take_rows(first, end);
}

int Passes::new_hidden(BufferKind kind, const char* what, int layer, int row) {
  return builder_.new_buffer(kind, fmt::format("{} layer.{} row {}", what, layer, row), hidden_, -1, layer, row);
}

void Passes::embed() {
  for (int r = first_; r < end_; ++r) {
    Operation forward = compute(OperationKind::forward, -1, r);
    parameters_.read(forward, -1);
    forward.after.push_back(0);  // wait_batch
    forward.takes.push_back(input_[r] = new_hidden(BufferKind::saved_input, "input", 0, r));
    builder_.add(std::move(forward));
  }
}

void Passes::forward(int layer, bool keep) {
  if (experts_.serve(layer)) return experts_.forward(layer, input_, saved_[layer], keep);
  for (int r = first_; r < end_; ++r) {
    Operation forward = compute(OperationKind::forward, layer, r);
    parameters_.read(forward, layer);
    SavedBuffers& saved = saved_[layer][r];
    saved.input = input_[r];
    (keep ? forward.uses : forward.frees).push_back(saved.input);
    forward.takes.push_back(input_[r] = new_hidden(BufferKind::saved_input, "input", layer + 1, r));
    if (keep) keep_for_backward(builder_, forward, saved);
    builder_.add(std::move(forward));
  }
}

void Passes::offload(int layer) {
  if (layer < 0 || layer >= offloaded_) return;
  for (int r = first_; r < end_; ++r) {
    SavedBuffers& saved = saved_[layer][r];
    Operation offload{
        .kind = OperationKind::offload, .lane = Lane::to_host, .layer = layer, .bytes = hidden_, .row = r};
    offload.takes.push_back(saved.arena = new_hidden(BufferKind::arena, "arena", layer, r));
    offload.frees.push_back(saved.input);
    builder_.add(std::move(offload));
  }
}

int Passes::head_loss() {
  int last = -1;
  for (int r = first_; r < end_; ++r) {
    Operation loss = compute(OperationKind::forward, builder_.layers, r);
    parameters_.read(loss, builder_.layers);
    loss.frees.push_back(input_[r]);
    experts_.give_back(loss, r);
    last = builder_.add(std::move(loss));
  }
  return last;
}

void Passes::head_backward() {
  for (int r = first_; r < end_; ++r) {
    Operation backward = compute(OperationKind::backward, builder_.layers, r);
    parameters_.read(backward, builder_.layers);
    gradients_.write(backward, builder_.layers);
    backward.takes.push_back(grad_[r] = new_hidden(BufferKind::scratch, "hidden gradient", builder_.layers, r));
    backward.frees.push_back(input_[r]);
    experts_.give_back(backward, r);
    builder_.add(std::move(backward));
  }
}

void Passes::prefetch(int layer) {
  if (layer < 0 || layer >= offloaded_) return;
  for (int r = first_; r < end_; ++r) {
    SavedBuffers& saved = saved_[layer][r];
    Operation prefetch{
        .kind = OperationKind::prefetch, .lane = Lane::to_device, .layer = layer, .bytes = hidden_, .row = r};
    prefetch.uses.push_back(saved.arena);
    builder_.give_back_later(saved.arena);
    prefetch.takes.push_back(saved.input = new_hidden(BufferKind::saved_input, "input", layer, r));
    builder_.add(std::move(prefetch));
  }
}

void Passes::backward(int layer) {
  if (experts_.serve(layer)) return experts_.backward(layer, grad_, saved_[layer]);
  for (int r = first_; r < end_; ++r) {
    const SavedBuffers& saved = saved_[layer][r];
    if (recompute_) {
      Operation recompute = compute(OperationKind::recompute, layer, r);
      parameters_.read(recompute, layer);
      recompute.uses.push_back(saved.input);
      if (saved.indices >= 0) recompute.uses.push_back(saved.indices);
      if (saved.activations >= 0) recompute.uses.push_back(saved.activations);
      builder_.add(std::move(recompute));
    }

    Operation backward = compute(OperationKind::backward, layer, r);
    parameters_.read(backward, layer);
    gradients_.write(backward, layer);
    backward.uses.push_back(grad_[r]);
    backward.frees.push_back(saved.input);
    if (saved.indices >= 0) backward.frees.push_back(saved.indices);
    if (saved.activations >= 0) backward.frees.push_back(saved.activations);
    builder_.add(std::move(backward));
  }
}

void Passes::embed_backward(bool with_parameters) {
  for (int r = first_; r < end_; ++r) {
    Operation backward = compute(OperationKind::backward, -1, r);
    if (with_parameters) parameters_.read(backward, -1);
    gradients_.write(backward, -1);
    backward.frees.push_back(grad_[r]);
    builder_.add(std::move(backward));
  }
}

}  // namespace ganymede::plan
