#pragma once

#include <memory>
#include <vector>

#include "services/worker/engine/bindings.h"
#include "services/worker/model/layer_parts.h"

namespace ganymede::worker {

/// What the compute lane does of a layer whose tokens travel: its parts before, between and behind dispatch and
/// combine. Compute lane only.
class ExpertOperations {
 public:
  ExpertOperations(Workbench& bench, const plan::StepPlan& plan, const Bindings& bindings)
      : bench_(bench), plan_(plan), bindings_(bindings) {}

  /// Of one operation.
  struct Given {
    const plan::Operation& operation;
    const model::LayerContext& context;
    const Bindings::Layer& layer;
  };
  void forward(const Given& given, model::SavedLayer* saved, const at::Tensor& input, std::int64_t* expert_counts);
  void recompute(const Given& given, const model::SavedLayer& saved);
  /// `gradient`: by the layer's output; then, by the part `attention`, the one by its input.
  void backward(const Given& given, const model::SavedLayer& saved, const at::Tensor& gradient);

 private:
  model::ReceivedRows received(const plan::Operation& operation) const;
  const model::Row& row(const plan::Operation& operation) const { return bench_.pass.rows.at(operation.row); }

  Workbench& bench_;
  const plan::StepPlan& plan_;
  const Bindings& bindings_;
  std::vector<std::shared_ptr<model::RecomputedLayer>> recomputed_;  // by row
};

}  // namespace ganymede::worker
