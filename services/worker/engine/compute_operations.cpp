#include "services/worker/engine/compute_operations.h"

namespace ganymede::worker {

using plan::BufferKind;
using plan::Operation;
using plan::OperationKind;

ComputeOperations::ComputeOperations(Workbench& bench, const plan::StepPlan& plan, plan::PlanKind kind)
    : bench_(bench), plan_(plan), kind_(kind), layers_(bench.config.model.layers), bindings_(bench, plan) {}

void ComputeOperations::install(OperationTable& table) {
  table[OperationKind::forward] = [this](const Operation& o, int i) { forward(o, i); };
  table[OperationKind::recompute] = [this](const Operation& o, int i) { recompute(o, i); };
  table[OperationKind::backward] = [this](const Operation& o, int i) { backward(o, i); };
}

model::LayerContext ComputeOperations::context(int layer) {
  return {&bench_.spec, &bench_.rotary, layer, bench_.placement.first_expert, bench_.placement.local_experts};
}

Bindings::Layer& ComputeOperations::tensors(int index) {
  Bindings::Layer& layer = bindings_.layer(index);
  if (layer.selection_bias.defined()) layer.weights.selection_bias = layer.selection_bias.to(at::kFloat);
  return layer;
}

at::Tensor ComputeOperations::buffer(const Operation& operation, BufferKind kind, int layer) const {
  int found = find_buffer(plan_, operation, kind, -1, layer);
  if (found < 0) return {};
  return kind == BufferKind::saved_indices ? bindings_.indices(found) : bindings_.hidden(found);
}

void ComputeOperations::forward(const Operation& operation, int index) {
  if (operation.layer < 0) {
    at::Tensor out = model::embed(bindings_.embed_weight(operation), row(operation));
    buffer(operation, BufferKind::saved_input, 0).copy_(out);
  } else if (operation.layer < layers_) {
    forward_layer(operation, index);
  } else {
    bench_.pass.row_loss.at(operation.row) =
        model::head_loss(bench_.spec, bindings_.head_weights(operation), row(operation),
                         buffer(operation, BufferKind::saved_input, layers_), bench_.config.compute.loss_chunk);
  }
}

void ComputeOperations::forward_layer(const Operation& operation, int index) {
  bool train = kind_ == plan::PlanKind::train;
  std::int64_t first = first_count(bench_.spec, operation.layer);
  std::int64_t* counts = train && first >= 0 ? bench_.pass.expert_counts.data() + first : nullptr;
  model::SavedLayer saved;
  saved.kept = bindings_.kept(operation);
  at::Tensor input = buffer(operation, BufferKind::saved_input, operation.layer);
  model::LayerContext of_layer = context(operation.layer);
  if (train) of_layer.largest_logits = bench_.pass.reductions.logits_of(operation.layer, bench_.spec.heads);
  if (operation.part != plan::Part::whole) {
    experts_.forward({operation, of_layer, tensors(index)}, train ? &saved : nullptr, input, counts);
  } else {
    at::Tensor out =
        model::forward_layer(of_layer, tensors(index).weights, row(operation), input, train ? &saved : nullptr, counts);
    buffer(operation, BufferKind::saved_input, operation.layer + 1).copy_(out);
  }
  at::Tensor indices = buffer(operation, BufferKind::saved_indices, operation.layer);
  if (indices.defined()) indices.copy_(saved.expert_indices);
}

model::SavedLayer ComputeOperations::saved(const Operation& operation) const {
  return {buffer(operation, BufferKind::saved_input, operation.layer),
          buffer(operation, BufferKind::saved_indices, operation.layer), bindings_.kept(operation)};
}

void ComputeOperations::recompute(const Operation& operation, int index) {
  model::LayerContext of_layer = context(operation.layer);
  if (operation.part != plan::Part::whole)
    return experts_.recompute({operation, of_layer, tensors(index)}, saved(operation));
  recomputed_ = model::recompute_layer(of_layer, tensors(index).weights, row(operation), saved(operation));
}

void ComputeOperations::backward(const Operation& operation, int index) {
  bindings_.clear_gradients(operation);
  if (operation.layer < 0) return backward_embed(operation);
  if (operation.layer == layers_) return backward_head(operation);
  backward_layer(operation, index);
}

void ComputeOperations::backward_head(const Operation& operation) {
  double scale = 1.0 / static_cast<double>(bench_.pass.loss_tokens);
  model::HeadResult result = model::head_forward_backward(
      bench_.spec, bindings_.head_weights(operation), bindings_.head_gradients(operation), row(operation),
      buffer(operation, BufferKind::saved_input, layers_), scale, bench_.config.compute.loss_chunk, operation.row > 0);
  bench_.pass.row_loss.at(operation.row) = result.loss_sum;
  buffer(operation, BufferKind::scratch, -1).copy_(result.grad_hidden);
}

void ComputeOperations::backward_layer(const Operation& operation, int index) {
  if (operation.part != plan::Part::whole) {
    model::LayerContext of_layer = context(operation.layer);
    return experts_.backward({operation, of_layer, tensors(index)}, saved(operation),
                             buffer(operation, BufferKind::scratch, -1));
  }
  if (recomputed_ == nullptr) recompute(operation, index);  // all was kept: it is only put together
  Bindings::Layer& layer = tensors(index);
  at::Tensor grad = buffer(operation, BufferKind::scratch, -1);
  at::Tensor by_input = model::backward_layer(context(operation.layer), layer.weights, layer.gradients, row(operation),
                                              *recomputed_, grad, operation.row > 0);
  grad.copy_(by_input);
  recomputed_.reset();
}

void ComputeOperations::backward_embed(const Operation& operation) {
  model::embed_backward(row(operation), buffer(operation, BufferKind::scratch, -1), bindings_.embed_gradient(operation),
                        operation.row > 0);
}

}  // namespace ganymede::worker
