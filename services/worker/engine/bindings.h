#pragma once

#include <map>
#include <string>
#include <unordered_map>

#include "services/worker/engine/workbench.h"
#include "services/worker/model/ends.h"
#include "services/worker/model/layer.h"

namespace ganymede::worker {

/// Tensors over the memory of one plan's operations: buffers of the pool, or the segments for buckets that are used
/// in place. Views are made once and kept: nothing moves while the plan lives. Used by one thread at a time.
class Bindings {
 public:
  Bindings(const Workbench& bench, const plan::StepPlan& plan);

  struct Layer {
    model::LayerTensors weights, gradients;
    at::Tensor selection_bias;  // as it was gathered; `weights` needs it in fp32
  };
  /// Of a forward, recompute or backward of a layer; gradients are undefined where the operation has none.
  Layer& layer(int operation);
  model::HeadTensors head_weights(const plan::Operation& operation) const;
  model::HeadTensors head_gradients(const plan::Operation& operation) const;
  at::Tensor embed_weight(const plan::Operation& operation) const;
  at::Tensor embed_gradient(const plan::Operation& operation) const;

  /// [T, H] in the compute type.
  at::Tensor hidden(int buffer) const;
  /// int32 [T, K].
  at::Tensor indices(int buffer) const;
  /// What the operation's buffer of kept activations holds; all undefined without one.
  model::KeptLayer kept(const plan::Operation& operation) const;

  /// Zeroes what no gradient is written to in the gradient buffers that the operation takes: gaps between parameters
  /// and selection biases. Else old bytes of the pool would travel with them. Where it is not the first row, gradients
  /// are added, so all is zeroed.
  void clear_gradients(const plan::Operation& operation) const;

 private:
  struct Place {
    int bucket = 0;
    std::int64_t offset = 0;  // element in the bucket's flat array
    const model_spec::ParameterSpec* parameter = nullptr;
  };
  struct Gap {
    std::int64_t first = 0, count = 0;
  };

  at::Tensor view(const plan::Operation& operation, const std::string& name, bool gradient) const;
  model::HeadTensors head(const plan::Operation& operation, bool gradient) const;

  const Workbench& bench_;
  const plan::StepPlan& plan_;
  at::ScalarType type_;
  std::unordered_map<std::string, Place> places_;
  std::vector<std::vector<Gap>> gaps_;  // by bucket
  std::map<int, Layer> layers_;
};

}  // namespace ganymede::worker
