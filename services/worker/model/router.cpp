#include "services/worker/model/router.h"

#include <cmath>
#include <limits>

#include "common/base/error.h"
#include "services/worker/model/matmul.h"
#include "services/worker/model/parallel.h"

namespace ganymede::worker::model {

namespace {

constexpr float smallest_sum = 1e-20f;

struct ExpertRange {
  std::int64_t begin, end;
};

/// Keeps the best `top_k` of a range in order by insertion.
void select_row(const float* scores, const float* bias, ExpertRange among, std::int64_t top_k, std::int32_t* chosen,
                std::vector<float>& best) {
  std::int64_t kept = 0;
  for (std::int64_t expert = among.begin; expert < among.end; ++expert) {
    float value = scores[expert] + bias[expert];
    if (std::isnan(value)) value = -std::numeric_limits<float>::infinity();
    if (kept == top_k && !(value > best[static_cast<std::size_t>(top_k - 1)])) continue;
    std::int64_t place = kept < top_k ? kept++ : top_k - 1;
    for (; place > 0 && value > best[static_cast<std::size_t>(place - 1)]; --place) {
      best[static_cast<std::size_t>(place)] = best[static_cast<std::size_t>(place - 1)];
      chosen[place] = chosen[place - 1];
    }
    best[static_cast<std::size_t>(place)] = value;
    chosen[place] = static_cast<std::int32_t>(expert);
  }
}

float chosen_sum(const float* scores, const std::int32_t* chosen, std::int64_t top_k) {
  float sum = 0;
  for (std::int64_t k = 0; k < top_k; ++k) sum += scores[chosen[k]];
  return sum + smallest_sum;
}

}  // namespace

at::Tensor router_scores(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& out) {
  auto scores = project(x, weight, out);
  const std::int64_t experts = scores.size(1);
  auto* data = scores.data_ptr<float>();
  parallel_rows(scores.size(0), experts,
                [&](std::int64_t t) { kernels::sigmoid(data + t * experts, static_cast<std::size_t>(experts)); });
  return scores;
}

at::Tensor select_experts(const at::Tensor& scores, const at::Tensor& bias, std::int64_t top_k, std::int64_t groups,
                          std::int64_t* counts) {
  const std::int64_t tokens = scores.size(0), experts = scores.size(1);
  GANYMEDE_CHECK(experts % groups == 0 && top_k % groups == 0, "{} of {} experts are chosen in {} groups", top_k,
                 experts, groups);
  auto indices = at::empty({tokens, top_k}, at::kInt);
  const auto dense_bias = bias.contiguous();
  const auto* from = scores.const_data_ptr<float>();
  const auto* add = dense_bias.const_data_ptr<float>();
  auto* to = indices.data_ptr<std::int32_t>();
  fork_join(tokens, 64, [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> best(static_cast<std::size_t>(top_k));
    for (std::int64_t t = begin; t < end; ++t) {
      for (std::int64_t g = 0; g < groups; ++g) {
        select_row(from + t * experts, add, {g * experts / groups, (g + 1) * experts / groups}, top_k / groups,
                   to + (t * groups + g) * (top_k / groups), best);
      }
    }
  });
  for (std::int64_t i = 0; counts != nullptr && i < tokens * top_k; ++i) ++counts[to[i]];
  return indices;
}

at::Tensor routing_weights(const at::Tensor& scores, const at::Tensor& indices, double scale) {
  const std::int64_t tokens = indices.size(0), top_k = indices.size(1), experts = scores.size(1);
  auto weights = at::empty({tokens, top_k}, at::kFloat);
  const auto* from = scores.const_data_ptr<float>();
  const auto* chosen = indices.const_data_ptr<std::int32_t>();
  auto* to = weights.data_ptr<float>();
  for (std::int64_t t = 0; t < tokens; ++t) {
    const auto* row = from + t * experts;
    const auto* experts_of_token = chosen + t * top_k;
    const float factor = static_cast<float>(scale) / chosen_sum(row, experts_of_token, top_k);
    for (std::int64_t k = 0; k < top_k; ++k) to[t * top_k + k] = row[experts_of_token[k]] * factor;
  }
  return weights;
}

at::Tensor routing_weights_backward(const at::Tensor& scores, const at::Tensor& indices, const at::Tensor& grad_weights,
                                    double scale) {
  const std::int64_t tokens = indices.size(0), top_k = indices.size(1), experts = scores.size(1);
  auto gradient = at::zeros_like(scores);
  const auto* from = scores.const_data_ptr<float>();
  const auto* chosen = indices.const_data_ptr<std::int32_t>();
  const auto* grad = grad_weights.const_data_ptr<float>();
  auto* to = gradient.data_ptr<float>();
  for (std::int64_t t = 0; t < tokens; ++t) {
    const auto* row = from + t * experts;
    const float sum = chosen_sum(row, chosen + t * top_k, top_k);
    float mean = 0;  // of the gradients, weighted by the shares of the sum
    for (std::int64_t k = 0; k < top_k; ++k) mean += grad[t * top_k + k] * row[chosen[t * top_k + k]] / sum;
    for (std::int64_t k = 0; k < top_k; ++k) {
      const std::int32_t expert = chosen[t * top_k + k];
      const float by_score = static_cast<float>(scale) * (grad[t * top_k + k] - mean) / sum;
      to[t * experts + expert] = by_score * row[expert] * (1 - row[expert]);
    }
  }
  return gradient;
}

}  // namespace ganymede::worker::model
