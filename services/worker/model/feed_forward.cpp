#include "services/worker/model/feed_forward.h"

#include "services/worker/model/matmul.h"
#include "services/worker/model/parallel.h"
#include "services/worker/model/row_access.h"

namespace ganymede::worker::model {

at::Tensor feed_forward(const FeedForwardTensors& weights, const at::Tensor& x, const FeedForwardKept& kept) {
  const auto gate = project(x, weights.gate, kept.gate), up = project(x, weights.up, kept.up);
  const auto hidden = kept.gate.defined() ? at::empty_like(gate) : gate;
  const Rows gates(gate), ups(up), hiddens(hidden);
  parallel_rows(x.size(0), gate.size(1),
                [&](std::int64_t t) { kernels::swiglu(gates[t], ups[t], hiddens[t], gates.size, gates.element); });
  return project(hidden, weights.down);
}

at::Tensor feed_forward_backward(const FeedForwardTensors& weights, const FeedForwardTensors& gradients,
                                 const at::Tensor& x, const at::Tensor& grad_output, bool accumulate,
                                 const FeedForwardKept& kept) {
  const auto gate = kept.gate.defined() ? kept.gate : project(x, weights.gate);
  const auto up = kept.up.defined() ? kept.up : project(x, weights.up);
  const auto hidden = project(grad_output, weights.down.t());  // first its gradient, then hidden itself
  const Rows gates(gate), ups(up), hiddens(hidden);
  parallel_rows(x.size(0), gate.size(1), [&](std::int64_t t) {
    kernels::swiglu_backward(gates[t], ups[t], hiddens[t], 1.0f, gates.size, gates.element);
  });
  weight_gradient(grad_output, hidden, gradients.down, accumulate);
  weight_gradient(gate, x, gradients.gate, accumulate);
  weight_gradient(up, x, gradients.up, accumulate);
  auto grad_x = project(gate, weights.gate.t());
  multiply(up, weights.up, grad_x, true);
  return grad_x;
}

}  // namespace ganymede::worker::model
