#include "tests/numerics/model/reference.h"

#include <cmath>
#include <limits>

namespace ganymede::worker::model::reference {

namespace {

/// [heads, T, dim] rotated by each token's position in its document.
at::Tensor rotated(const at::Tensor& heads, const Row& row, std::int64_t rotary_dim, double theta) {
  if (rotary_dim == 0) return heads;
  std::vector<double> position;
  for (std::size_t d = 0; d + 1 < row.document_begin.size(); ++d) {
    for (auto t = row.document_begin[d]; t < row.document_begin[d + 1]; ++t) {
      position.push_back(static_cast<double>(t - row.document_begin[d]));
    }
  }
  const auto p = at::tensor(position, at::kDouble);
  const auto frequency = at::pow(theta, at::arange(0, rotary_dim, 2, at::kDouble).div(rotary_dim).neg());
  const auto half = at::outer(p, frequency);
  const auto angle = at::cat({half, half}, 1);
  const auto x = heads.narrow(2, 0, rotary_dim);
  const auto turned = at::cat({x.narrow(2, rotary_dim / 2, rotary_dim / 2).neg(), x.narrow(2, 0, rotary_dim / 2)}, 2);
  const auto type = heads.scalar_type();
  const auto result = x * angle.cos().to(type) + turned * angle.sin().to(type);
  return at::cat({result, heads.narrow(2, rotary_dim, heads.size(2) - rotary_dim)}, 2);
}

/// bool [T, T]: query (row) sees key (column).
at::Tensor visible(const Row& row, std::int64_t window) {
  const std::int64_t tokens = row.document_begin.back();
  auto mask = at::zeros({tokens, tokens}, at::kBool);
  for (std::size_t d = 0; d + 1 < row.document_begin.size(); ++d) {
    for (auto q = row.document_begin[d]; q < row.document_begin[d + 1]; ++q) {
      for (auto k = row.document_begin[d]; k <= q; ++k) {
        if (window == 0 || q - k < window) mask.data_ptr<bool>()[q * tokens + k] = true;
      }
    }
  }
  return mask;
}

at::Tensor split_heads(const at::Tensor& projection, std::int64_t heads) {
  return projection.view({projection.size(0), heads, -1}).transpose(0, 1);
}

at::Tensor swiglu(const at::Tensor& x, const at::Tensor& gate, const at::Tensor& up, const at::Tensor& down) {
  const auto g = x.matmul(gate.t());
  return (g * g.sigmoid() * x.matmul(up.t())).matmul(down.t());
}

at::Tensor mixture(const model_spec::ModelSpec& spec, const LayerTensors& weights, const at::Tensor& x) {
  const auto scores = x.matmul(weights.router.t()).sigmoid();
  const auto selection = scores.detach() + weights.selection_bias.to(scores.scalar_type());
  const auto by_group = selection.view({selection.size(0), spec.router_groups, -1});
  const auto chosen = std::get<1>(by_group.topk(spec.top_k / spec.router_groups, 2));
  const auto mask = at::zeros_like(by_group).scatter(2, chosen, 1.0).view_as(selection);
  const auto kept = scores * mask;
  const auto routing = kept / (kept.sum(1, true) + 1e-20) * spec.router_scale;
  auto out = at::zeros_like(x);
  for (std::int64_t e = 0; e < spec.experts; ++e) {
    const auto& both = weights.expert_gate_up[static_cast<std::size_t>(e)];
    const std::int64_t ffn = both.size(0) / 2;
    out = out + routing.narrow(1, e, 1) * swiglu(x, both.narrow(0, 0, ffn), both.narrow(0, ffn, ffn),
                                                 weights.expert_down[static_cast<std::size_t>(e)]);
  }
  return out;
}

}  // namespace

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  return x * (x.pow(2).mean(-1, true) + eps).rsqrt() * weight;
}

at::Tensor attention(const model_spec::ModelSpec& spec, int layer, const LayerTensors& weights, const Row& row,
                     const at::Tensor& x) {
  const auto& kind = spec.layers[static_cast<std::size_t>(layer)];
  const std::int64_t group = spec.heads / kind.kv_heads, tokens = x.size(0);
  const auto q = rotated(split_heads(x.matmul(weights.q_proj.t()), spec.heads), row, spec.rotary_dim, kind.rope_theta);
  const auto k =
      rotated(split_heads(x.matmul(weights.k_proj.t()), kind.kv_heads), row, spec.rotary_dim, kind.rope_theta);
  const auto v = split_heads(x.matmul(weights.v_proj.t()), kind.kv_heads) * spec.value_scale;
  auto logits = q.matmul(k.repeat_interleave(group, 0).transpose(1, 2)) / std::sqrt(spec.qk_dim);
  logits = logits.masked_fill(visible(row, kind.window).logical_not(), -std::numeric_limits<double>::infinity());
  if (kind.sinks) logits = at::cat({logits, weights.sinks.view({-1, 1, 1}).expand({-1, tokens, 1})}, 2);
  const auto probability = logits.softmax(2).narrow(2, 0, tokens);
  const auto out = probability.matmul(v.repeat_interleave(group, 0));
  return out.transpose(0, 1).reshape({tokens, -1}).matmul(weights.o_proj.t());
}

at::Tensor layer(const model_spec::ModelSpec& spec, int layer, const LayerTensors& weights, const Row& row,
                 const at::Tensor& x) {
  const auto middle = x + attention(spec, layer, weights, row, rms_norm(x, weights.input_norm, spec.norm_eps));
  const auto feed = rms_norm(middle, weights.post_norm, spec.norm_eps);
  if (spec.layers[static_cast<std::size_t>(layer)].moe) return middle + mixture(spec, weights, feed);
  return middle + swiglu(feed, weights.gate_proj, weights.up_proj, weights.down_proj);
}

at::Tensor loss(const model_spec::ModelSpec& spec, const HeadTensors& weights, const Row& row,
                const at::Tensor& hidden) {
  const auto logits = rms_norm(hidden, weights.norm, spec.norm_eps).matmul(weights.head.t());
  const auto seen = row.targets.ge(0);
  const auto chosen = logits.log_softmax(1).gather(1, row.targets.clamp_min(0).unsqueeze(1)).squeeze(1);
  return (chosen * seen.to(chosen.scalar_type())).sum().neg();
}

}  // namespace ganymede::worker::model::reference
