#include "services/worker/engine/expert_operations.h"

#include "services/worker/engine/exchange_views.h"

namespace ganymede::worker {

using plan::BufferKind;
using plan::Operation;
using plan::Part;
using plan::Travel;

/// Of all rows that there is room for, those that came.
model::ReceivedRows ExpertOperations::received(const Operation& operation) const {
  model::ReceivedRows all = ExchangeViews(bench_, plan_, bindings_, operation).received();
  std::int64_t arrived = bench_.pass.dispatched.at(static_cast<std::size_t>(operation.row)).received_rows();
  return {all.rows.narrow(0, 0, arrived), all.choices.narrow(0, 0, arrived), all.gate_up};
}

void ExpertOperations::forward(const Given& given, model::SavedLayer* saved, const at::Tensor& input,
                               std::int64_t* expert_counts) {
  const Operation& operation = given.operation;
  ExchangeViews views(bench_, plan_, bindings_, operation);
  if (operation.part == Part::attention) {
    int middle = find_buffer(plan_, operation, BufferKind::scratch, -1, operation.layer);
    model::forward_attention(given.context, given.layer.weights, row(operation), input,
                             middle < 0 ? views.kept().middle : bindings_.hidden(middle), views.own(), saved,
                             expert_counts);
    return;
  }
  model::ReceivedRows rows = received(operation);
  at::Tensor results = views.rows(Travel::results);
  model::forward_experts(given.context, given.layer.weights, rows,
                         results.defined() ? results.narrow(0, 0, rows.rows.size(0)) : rows.rows);
}

void ExpertOperations::recompute(const Given& given, const model::SavedLayer& saved) {
  recomputed_.resize(bench_.pass.rows.size());
  recomputed_[static_cast<std::size_t>(given.operation.row)] = model::recompute_attention(
      given.context, given.layer.weights, row(given.operation), saved,
      saved.kept.all() ? model::OwnRows() : ExchangeViews(bench_, plan_, bindings_, given.operation).own());
}

void ExpertOperations::backward(const Given& given, const model::SavedLayer& saved, const at::Tensor& gradient) {
  const Operation& operation = given.operation;
  ExchangeViews views(bench_, plan_, bindings_, operation);
  if (operation.part == Part::experts) {
    model::ReceivedRows rows = received(operation);
    std::int64_t arrived = rows.rows.size(0);
    model::backward_experts(given.context, given.layer.weights, given.layer.gradients, rows,
                            views.rows(Travel::gradients).narrow(0, 0, arrived),
                            views.with_rows(Travel::gradients).narrow(0, 0, arrived), operation.row > 0);
    return;
  }
  if (saved.kept.all()) recompute(given, saved);  // it is only put together
  auto& layer = recomputed_.at(static_cast<std::size_t>(operation.row));
  gradient.copy_(model::backward_attention(given.context, given.layer.weights, given.layer.gradients, row(operation),
                                           *layer, gradient, views.rows(Travel::combined),
                                           views.with_rows(Travel::combined), operation.row > 0));
  layer.reset();
}

}  // namespace ganymede::worker
