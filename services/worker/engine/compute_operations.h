#pragma once

#include <memory>
#include <vector>

#include "services/worker/engine/bindings.h"
#include "services/worker/engine/executor/executor.h"
#include "services/worker/engine/expert_operations.h"
#include "services/worker/model/layer.h"

namespace ganymede::worker {

/// forward, recompute and backward of embedding, layers and head for one row each. Compute lane only.
class ComputeOperations {
 public:
  ComputeOperations(Workbench& bench, const plan::StepPlan& plan, plan::PlanKind kind);
  void install(OperationTable& table);

 private:
  void forward(const plan::Operation& operation, int index);
  void forward_layer(const plan::Operation& operation, int index);
  void recompute(const plan::Operation& operation, int index);
  void backward(const plan::Operation& operation, int index);
  void backward_head(const plan::Operation& operation);
  void backward_layer(const plan::Operation& operation, int index);
  void backward_embed(const plan::Operation& operation);

  model::LayerContext context(int layer);
  Bindings::Layer& tensors(int index);
  at::Tensor buffer(const plan::Operation& operation, plan::BufferKind kind, int layer) const;
  model::SavedLayer saved(const plan::Operation& operation) const;
  const model::Row& row(const plan::Operation& operation) const { return bench_.pass.rows.at(operation.row); }

  Workbench& bench_;
  const plan::StepPlan& plan_;
  plan::PlanKind kind_;
  int layers_;
  Bindings bindings_;
  ExpertOperations experts_{bench_, plan_, bindings_};
  std::shared_ptr<model::RecomputedLayer> recomputed_;  // of the row whose backward comes next
};

}  // namespace ganymede::worker
