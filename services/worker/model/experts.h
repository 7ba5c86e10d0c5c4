#pragma once

#include "services/worker/model/expert_order.h"

/// The experts of this rank's place on the rows that came here.
namespace ganymede::worker::model {

/// What the experts of one place work on.
struct ExpertInput {
  at::Tensor rows;     // [n, H] compute dtype
  at::Tensor indices;  // int32 [n, K]
  at::Tensor weights;  // fp32 [n, K] routing weights
  ExpertOrder order;
};

/// Weights of the L experts, or their fp32 gradients: see LayerTensors.
struct ExpertTensors {
  const std::vector<at::Tensor>& gate_up;
  const std::vector<at::Tensor>& down;
};

/// [n, H]: `base` (if defined) + Σ over this place's choices of weight · expert(row), in order of the choices. With
/// `gate_up` ([slots, 2F]) the hidden activations are kept there for backward. Written to `to` if it is defined, which
/// may be the rows.
at::Tensor experts(const ExpertTensors& weights, const ExpertInput& input, const at::Tensor& base,
                   const at::Tensor& gate_up = {}, const at::Tensor& to = {});

struct ExpertGradients {
  at::Tensor rows;     // [n, H]
  at::Tensor weights;  // fp32 [n, K]; 0 for choices of other places
};

/// `grad_output` [n, H], by the sum above. Hidden activations are computed again, expert by expert, unless `gate_up`
/// has them (it is used up). Gradients of the experts' weights are written, or computed whole and then added with
/// `accumulate`. Written to `to` if it is defined: its rows may be `grad_output`, its weights are zeros.
ExpertGradients experts_backward(const ExpertTensors& weights, const ExpertTensors& gradients, const ExpertInput& input,
                                 const at::Tensor& grad_output, bool accumulate, const at::Tensor& gate_up = {},
                                 const ExpertGradients& to = {});

}  // namespace ganymede::worker::model
