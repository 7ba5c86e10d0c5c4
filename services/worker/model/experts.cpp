#include "services/worker/model/experts.h"

#include <cstring>

#include "services/worker/model/matmul.h"
#include "services/worker/model/parallel.h"
#include "services/worker/model/row_access.h"

namespace ganymede::worker::model {

namespace {

/// Scratch of one worker, large enough for its largest expert; pieces are taken from it in order.
class Scratch {
 public:
  void begin(std::int64_t elements, at::ScalarType dtype) {
    if (!data_.defined() || data_.numel() < elements) data_ = at::empty({elements}, dtype);
    used_ = 0;
  }
  at::Tensor take(std::int64_t rows, std::int64_t columns) {
    auto piece = data_.narrow(0, used_, rows * columns).view({rows, columns});
    used_ += rows * columns;
    return piece;
  }

 private:
  at::Tensor data_;
  std::int64_t used_ = 0;
};

/// Calls f(expert, scratch) for each expert. Those with more slots than a thread's share come first, each with all
/// threads; the rest side by side. Tiles are fixed, so that this order changes no bit.
template <class F>
void for_experts(const ExpertOrder& order, const F& f) {
  const std::int64_t workers = task_workers(), share = order.slots() / workers;
  std::vector<Scratch> scratch(static_cast<std::size_t>(workers));
  std::vector<std::int64_t> small;
  for (std::int64_t expert = 0; expert < order.experts(); ++expert) {
    if (order.size(expert) > share) {
      f(expert, scratch[0]);
    } else {
      small.push_back(expert);
    }
  }
  parallel_tasks(static_cast<std::int64_t>(small.size()), [&](std::int64_t task, std::int64_t worker) {
    f(small[static_cast<std::size_t>(task)], scratch[static_cast<std::size_t>(worker)]);
  });
}

/// Rows of `from` that go to an expert, one after another.
void gather(const ExpertOrder& order, std::int64_t expert, const at::Tensor& from, const at::Tensor& to) {
  const Rows source(from), target(to);
  const std::int64_t first = order.begin[static_cast<std::size_t>(expert)];
  const std::size_t bytes = source.size * static_cast<std::size_t>(from.element_size());
  parallel_rows(to.size(0), to.size(1), [&](std::int64_t i) {
    std::memcpy(target[i], source[order.row[static_cast<std::size_t>(first + i)]], bytes);
  });
}

/// out[row] = base[row] + Σ_k factor[row, k] · slots[position(row, k)]; factor null: 1.
void sum_choices(const ExpertOrder& order, const at::Tensor& slots, const float* factor, const at::Tensor& base,
                 const at::Tensor& out) {
  const Rows from(slots), to(out), start(base.defined() ? base : out);
  const auto top_k = static_cast<std::int64_t>(order.position.size()) / std::max<std::int64_t>(1, out.size(0));
  fork_join(out.size(0), 16, [&](std::int64_t begin, std::int64_t end) {
    std::vector<const void*> rows(static_cast<std::size_t>(top_k));
    std::vector<float> weights(static_cast<std::size_t>(top_k));
    for (std::int64_t row = begin; row < end; ++row) {
      std::size_t count = 0;
      for (std::int64_t k = row * top_k; k < (row + 1) * top_k; ++k) {
        const std::int64_t slot = order.position[static_cast<std::size_t>(k)];
        if (slot < 0) continue;
        rows[count] = from[slot];
        weights[count++] = factor != nullptr ? factor[k] : 1.0f;
      }
      kernels::sum_rows(base.defined() ? start[row] : nullptr, rows.data(),
                        factor != nullptr ? weights.data() : nullptr, count, to[row], to.size, to.element);
    }
  });
}

struct Sizes {
  std::int64_t hidden = 0, ffn = 0;
  explicit Sizes(const ExpertTensors& weights) : hidden(weights.down.at(0).size(0)), ffn(weights.down[0].size(1)) {}
};

/// Backward of one expert.
struct Backward {
  const ExpertTensors& weights;
  const ExpertTensors& gradients;
  const ExpertInput& input;
  const at::Tensor& grad_output;
  bool accumulate;
  at::Tensor grad_slots;  // [slots, H]
  float* grad_weights;    // [n, K]
  at::Tensor kept;        // [slots, 2F] or undefined

  void run(std::int64_t expert, Scratch& scratch) const {
    const auto e = static_cast<std::size_t>(expert);
    const Sizes sizes(weights);
    const std::int64_t count = input.order.size(expert), first = input.order.begin[e];
    if (count > 0) scratch.begin(count * (2 * sizes.hidden + 3 * sizes.ffn), input.rows.scalar_type());
    if (count == 0) return clear(e);
    const auto rows = scratch.take(count, sizes.hidden), grad = scratch.take(count, sizes.hidden);
    const auto hidden = scratch.take(count, sizes.ffn);
    const auto gate_up = kept.defined() ? kept.narrow(0, first, count) : scratch.take(count, 2 * sizes.ffn);
    gather(input.order, expert, input.rows, rows);
    gather(input.order, expert, grad_output, grad);
    if (!kept.defined()) multiply(rows, weights.gate_up[e].t(), gate_up);
    multiply(grad, weights.down[e], hidden);  // gradient of hidden, without the routing weight
    swiglu(first, gate_up, hidden);           // hidden becomes routing weight · hidden
    weight_gradient(grad, hidden, gradients.down[e], accumulate);
    weight_gradient(gate_up, rows, gradients.gate_up[e], accumulate);
    multiply(gate_up, weights.gate_up[e], grad_slots.narrow(0, first, count));
  }

  void clear(std::size_t expert) const {
    if (accumulate) return;
    gradients.gate_up[expert].zero_();
    gradients.down[expert].zero_();
  }

  void swiglu(std::int64_t first, const at::Tensor& gate_up, const at::Tensor& hidden) const {
    const Rows both(gate_up), grad(hidden);
    const std::int64_t top_k = input.indices.size(1), up = static_cast<std::int64_t>(grad.size) * hidden.element_size();
    const auto* weight = input.weights.const_data_ptr<float>();
    parallel_rows(hidden.size(0), hidden.size(1), [&](std::int64_t i) {
      const auto slot = static_cast<std::size_t>(first + i);
      const std::int64_t pair = input.order.row[slot] * top_k + input.order.choice[slot];
      auto* gate = static_cast<char*>(both[i]);
      grad_weights[pair] = kernels::swiglu_backward(gate, gate + up, grad[i], weight[pair], grad.size, grad.element);
    });
  }
};

}  // namespace

at::Tensor experts(const ExpertTensors& weights, const ExpertInput& input, const at::Tensor& base,
                   const at::Tensor& kept, const at::Tensor& to) {
  const Sizes sizes(weights);
  const auto& order = input.order;
  const auto slots = at::empty({order.slots(), sizes.hidden}, input.rows.options());
  for_experts(order, [&](std::int64_t expert, Scratch& scratch) {
    const auto e = static_cast<std::size_t>(expert);
    const std::int64_t count = order.size(expert);
    if (count == 0) return;
    scratch.begin(count * (sizes.hidden + 3 * sizes.ffn), input.rows.scalar_type());
    const auto rows = scratch.take(count, sizes.hidden);
    const auto hidden = scratch.take(count, sizes.ffn);
    const auto gate_up = kept.defined() ? kept.narrow(0, order.begin[e], count) : scratch.take(count, 2 * sizes.ffn);
    gather(order, expert, input.rows, rows);
    multiply(rows, weights.gate_up[e].t(), gate_up);
    const Rows both(gate_up), out(hidden);
    parallel_rows(count, sizes.ffn, [&](std::int64_t i) {
      const auto* gate = static_cast<const char*>(both[i]);
      kernels::swiglu(gate, gate + sizes.ffn * hidden.element_size(), out[i], out.size, out.element);
    });
    multiply(hidden, weights.down[e].t(), slots.narrow(0, order.begin[e], count));
  });
  auto out = to.defined() ? to : at::empty({input.rows.size(0), sizes.hidden}, input.rows.options());
  sum_choices(order, slots, input.weights.const_data_ptr<float>(), base, out);
  return out;
}

ExpertGradients experts_backward(const ExpertTensors& weights, const ExpertTensors& gradients, const ExpertInput& input,
                                 const at::Tensor& grad_output, bool accumulate, const at::Tensor& gate_up,
                                 const ExpertGradients& to) {
  const auto grad_slots = at::empty({input.order.slots(), input.rows.size(1)}, input.rows.options());
  ExpertGradients result = to;
  if (!to.rows.defined()) result = {at::empty_like(input.rows), at::zeros_like(input.weights)};
  const Backward backward{
      weights, gradients, input, grad_output, accumulate, grad_slots, result.weights.data_ptr<float>(), gate_up};
  for_experts(input.order, [&](std::int64_t expert, Scratch& scratch) { backward.run(expert, scratch); });
  sum_choices(input.order, grad_slots, nullptr, {}, result.rows);
  return result;
}

}  // namespace ganymede::worker::model
