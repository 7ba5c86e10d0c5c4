#include <cmath>

#include "services/worker/model/attention.h"
#include "services/worker/model/attention_blocks.h"
#include "services/worker/model/matmul.h"
#include "services/worker/model/parallel.h"
#include "services/worker/model/rotary.h"
#include "services/worker/model/softmax_kernels.h"

namespace ganymede::worker::model {

namespace {

/// One task: a document for one kv head, its blocks in order, so that the sums over queries have one order.
struct Backward {
  const AttentionShape& shape;
  const AttentionInput& input;
  const at::Tensor& grad_output;  // as the query lies: fp32 [kv_heads, T · group, v_dim]
  const at::Tensor& log_sum;
  const at::Tensor& delta;  // fp32 [kv_heads, T · group]: output · grad_output
  AttentionGradients& gradients;

  void run(const std::vector<AttentionBlock>& blocks, std::int64_t kv, at::Tensor& scratch) const {
    const std::int64_t size = 2 * largest_block(shape, blocks);
    if (!scratch.defined() || scratch.numel() < size) scratch = at::empty({size}, at::kFloat);
    for (const auto& block : blocks) run(block, kv, scratch);
  }

  void run(const AttentionBlock& block, std::int64_t kv, const at::Tensor& scratch) const {
    const std::int64_t rows = block.queries * shape.group(), first = block.query * shape.group();
    auto logits = scratch.narrow(0, 0, rows * block.keys).view({rows, block.keys});
    auto grad = scratch.narrow(0, rows * block.keys, rows * block.keys).view({rows, block.keys});
    const auto query = input.query[kv].narrow(0, first, rows);
    const auto key = input.key[kv].narrow(0, block.key, block.keys);
    const auto value = input.value[kv].narrow(0, block.key, block.keys);
    const auto grad_out = grad_output[kv].narrow(0, first, rows);
    at::mm_out(logits, query, key.t());
    at::mm_out(grad, grad_out, value.t());
    const auto* sums = log_sum.const_data_ptr<float>() + kv * log_sum.size(1) + first;
    const auto* deltas = delta.const_data_ptr<float>() + kv * delta.size(1) + first;
    for (std::int64_t row = 0; row < rows; ++row) {
      const auto seen = seen_keys(shape, block, row);
      kernels::softmax_backward(logits.data_ptr<float>() + row * block.keys, grad.data_ptr<float>() + row * block.keys,
                                seen.begin, seen.end, static_cast<std::size_t>(block.keys), shape.scale, sums[row],
                                deltas[row]);
    }
    gradients.value[kv].narrow(0, block.key, block.keys).addmm_(logits.t(), grad_out);
    gradients.key[kv].narrow(0, block.key, block.keys).addmm_(grad.t(), query);
    auto grad_query = gradients.query[kv].narrow(0, first, rows);
    at::mm_out(grad_query, grad, key);
  }
};

at::Tensor row_dots(const AttentionShape& shape, const at::Tensor& output, const at::Tensor& grad_output) {
  const std::int64_t tokens = output.size(0), group = shape.group();
  auto delta = at::empty({shape.kv_heads, tokens * group}, at::kFloat);
  auto* to = delta.data_ptr<float>();
  const auto element = element_of(output);
  const std::int64_t bytes = shape.v_dim * output.element_size();
  const auto* a = static_cast<const char*>(output.const_data_ptr());
  const auto* b = static_cast<const char*>(grad_output.const_data_ptr());
  parallel_rows(tokens, output.size(1), [&](std::int64_t t) {
    for (std::int64_t head = 0; head < shape.heads; ++head) {
      const std::int64_t at = (t * shape.heads + head) * bytes;
      to[(head / group * tokens + t) * group + head % group] =
          kernels::dot(a + at, b + at, static_cast<std::size_t>(shape.v_dim), element);
    }
  });
  return delta;
}

/// A sink's probability moves mass away from every value: its gradient is -Σ probability · delta.
at::Tensor sink_gradients(const AttentionShape& shape, const at::Tensor& sinks, const at::Tensor& log_sum,
                          const at::Tensor& delta) {
  auto gradient = at::empty({shape.heads}, at::kFloat);
  const std::int64_t group = shape.group(), tokens = log_sum.size(1) / group;
  for (std::int64_t head = 0; head < shape.heads; ++head) {
    const std::int64_t first = head / group * tokens * group + head % group;
    const auto* sums = log_sum.const_data_ptr<float>() + first;
    const auto* deltas = delta.const_data_ptr<float>() + first;
    const float sink = sinks.const_data_ptr<float>()[head];
    double total = 0;
    for (std::int64_t t = 0; t < tokens; ++t) total -= std::exp(sink - sums[t * group]) * deltas[t * group];
    gradient.data_ptr<float>()[head] = static_cast<float>(total);
  }
  return gradient;
}

}  // namespace

AttentionGradients attention_backward(const AttentionShape& shape, const std::vector<std::int64_t>& document_begin,
                                      const AttentionInput& input, const AttentionOutput& output,
                                      const at::Tensor& grad_output) {
  AttentionGradients gradients{at::empty_like(input.query), at::zeros_like(input.key), at::zeros_like(input.value), {}};
  const auto delta = row_dots(shape, output.output, grad_output);
  const auto grad = split_heads_scaled(grad_output, {shape.kv_heads, shape.group(), shape.v_dim}, 1);
  std::vector<std::vector<AttentionBlock>> documents;
  for (std::size_t d = 0; d + 1 < document_begin.size(); ++d) {
    documents.push_back(attention_blocks(shape, document_begin[d], document_begin[d + 1]));
  }
  const Backward backward{shape, input, grad, output.log_sum, delta, gradients};
  const auto count = static_cast<std::int64_t>(documents.size());
  std::vector<at::Tensor> scratch(static_cast<std::size_t>(task_workers()));
  parallel_tasks(count * shape.kv_heads, [&](std::int64_t task, std::int64_t worker) {
    const OneThread one_thread;
    backward.run(documents[static_cast<std::size_t>(task % count)], task / count,
                 scratch[static_cast<std::size_t>(worker)]);
  });
  if (input.sinks.defined()) gradients.sinks = sink_gradients(shape, input.sinks, output.log_sum, delta);
  return gradients;
}

}  // namespace ganymede::worker::model
