#include <ATen/core/grad_mode.h>

#include <cstring>

#include "common/base/error.h"
#include "services/worker/model/ends.h"
#include "services/worker/model/matmul.h"
#include "services/worker/model/parallel.h"
#include "services/worker/model/rms_norm.h"
#include "services/worker/model/row_access.h"
#include "services/worker/model/softmax_kernels.h"

namespace ganymede::worker::model {

namespace {

/// Tokens of a row that have a loss.
struct LossTokens {
  std::vector<std::int64_t> token, target;
};

LossTokens loss_tokens(const Row& row, std::int64_t vocabulary) {
  LossTokens found;
  const auto* target = row.targets.const_data_ptr<std::int64_t>();
  for (std::int64_t t = 0; t < row.targets.size(0); ++t) {
    if (target[t] == -1) continue;
    if (target[t] < 0 || target[t] >= vocabulary) {
      fail(
          "target {} at position {} of a row is outside of the vocabulary of {}; pack the data with the tokenizer that "
          "the model is made for",
          target[t], t, vocabulary);
    }
    found.token.push_back(t);
    found.target.push_back(target[t]);
  }
  return found;
}

at::Tensor gather_rows(const at::Tensor& from, const LossTokens& tokens, std::int64_t first, std::int64_t count) {
  auto out = at::empty({count, from.size(1)}, from.options());
  const Rows source(from), target(out);
  for (std::int64_t i = 0; i < count; ++i) {
    std::memcpy(target[i], source[tokens.token[static_cast<std::size_t>(first + i)]],
                target.size * static_cast<std::size_t>(from.element_size()));
  }
  return out;
}

/// Losses of the tokens from `first` on, whose logits are given; then the logits become their gradients if `scale` is
/// not 0.
void cross_entropy(const at::Tensor& logits, const LossTokens& tokens, std::int64_t first, double scale,
                   std::vector<float>& loss) {
  const Rows rows(logits);
  parallel_rows(logits.size(0), logits.size(1), [&](std::int64_t i) {
    const auto token = static_cast<std::size_t>(first + i);
    const float log_sum = kernels::log_sum_exp(rows[i], rows.size, rows.element);
    loss[token] = log_sum - kernels::element_at(rows[i], tokens.target[token], rows.element);
    if (scale == 0) return;
    kernels::cross_entropy_gradient(rows[i], rows.size, log_sum, tokens.target[token], static_cast<float>(scale),
                                    rows.element);
  });
}

double sum_in_order(const std::vector<float>& loss) {
  double total = 0;
  for (const float value : loss) total += value;
  return total;
}

void check_chunk(std::int64_t chunk) { GANYMEDE_CHECK(chunk > 0, "a loss chunk of {} tokens", chunk); }

/// Where the head's gradient of one row is summed over chunks: the buffer itself, or, if that already holds other
/// rows and there are several chunks, a tensor that is added at the end.
at::Tensor head_target(const at::Tensor& gradient, bool accumulate, bool several_chunks) {
  return accumulate && several_chunks ? at::empty(gradient.sizes(), at::kFloat) : gradient;
}

}  // namespace

double head_loss(const model_spec::ModelSpec& spec, const HeadTensors& weights, const Row& row,
                 const at::Tensor& hidden, std::int64_t chunk) {
  const c10::NoGradGuard no_grad;
  check_chunk(chunk);
  const auto tokens = loss_tokens(row, weights.head.size(0));
  const auto count = static_cast<std::int64_t>(tokens.token.size());
  std::vector<float> loss(tokens.token.size());
  for (std::int64_t first = 0; first < count; first += chunk) {
    const auto part = gather_rows(hidden, tokens, first, std::min(chunk, count - first));
    cross_entropy(project(rms_norm(part, weights.norm, spec.norm_eps), weights.head), tokens, first, 0, loss);
  }
  return sum_in_order(loss);
}

HeadResult head_forward_backward(const model_spec::ModelSpec& spec, const HeadTensors& weights,
                                 const HeadTensors& gradients, const Row& row, const at::Tensor& hidden, double scale,
                                 std::int64_t chunk, bool accumulate) {
  const c10::NoGradGuard no_grad;
  check_chunk(chunk);
  GANYMEDE_CHECK(scale != 0, "a loss scale of 0");
  const auto tokens = loss_tokens(row, weights.head.size(0));
  const auto count = static_cast<std::int64_t>(tokens.token.size());
  std::vector<float> loss(tokens.token.size());
  const auto input = gather_rows(hidden, tokens, 0, count);
  const auto normed = rms_norm(input, weights.norm, spec.norm_eps);
  const auto grad_normed = at::empty_like(normed);
  const auto grad_head = head_target(gradients.head, accumulate, count > chunk);
  const bool apart = !grad_head.is_same(gradients.head);
  if (count == 0) weight_gradient(normed, normed, gradients.head, accumulate);
  for (std::int64_t first = 0; first < count; first += chunk) {
    const std::int64_t size = std::min(chunk, count - first);
    const auto part = normed.narrow(0, first, size);
    const auto logits = project(part, weights.head);
    cross_entropy(logits, tokens, first, scale, loss);
    multiply(logits, weights.head, grad_normed.narrow(0, first, size));
    weight_gradient(logits, part, grad_head, first > 0 || (accumulate && !apart));
  }
  if (apart) gradients.head.add_(grad_head);
  const auto grad_input =
      rms_norm_backward(input, weights.norm, grad_normed, {}, gradients.norm, spec.norm_eps, accumulate);
  HeadResult result{sum_in_order(loss), at::zeros_like(hidden)};
  const Rows from(grad_input), to(result.grad_hidden);
  for (std::int64_t i = 0; i < count; ++i) {
    std::memcpy(to[tokens.token[static_cast<std::size_t>(i)]], from[i],
                from.size * static_cast<std::size_t>(hidden.element_size()));
  }
  return result;
}

at::Tensor head_logits(const model_spec::ModelSpec& spec, const HeadTensors& weights, const at::Tensor& hidden) {
  const c10::NoGradGuard no_grad;
  return project(rms_norm(hidden, weights.norm, spec.norm_eps), weights.head).to(at::kFloat);
}

}  // namespace ganymede::worker::model
