#pragma once

#include "services/worker/model/ends.h"
#include "services/worker/model/tensors.h"

/// The model as a textbook writes it, for libtorch autograd in any floating-point type.
namespace ganymede::worker::model::reference {

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps);

/// Attention and its projections of the normed input [T, H].
at::Tensor attention(const model_spec::ModelSpec& spec, int layer, const LayerTensors& weights, const Row& row,
                     const at::Tensor& x);

/// Output of a layer; all experts are here.
at::Tensor layer(const model_spec::ModelSpec& spec, int layer, const LayerTensors& weights, const Row& row,
                 const at::Tensor& x);

/// Sum of the losses of a row's loss tokens.
at::Tensor loss(const model_spec::ModelSpec& spec, const HeadTensors& weights, const Row& row,
                const at::Tensor& hidden);

}  // namespace ganymede::worker::model::reference
