#include "tests/numerics/model/sample.h"

#include <cstring>
#include <numeric>

#include "common/base/random.h"

namespace ganymede::worker::model::testing {

std::int64_t Shape::tokens() const { return std::accumulate(documents.begin(), documents.end(), std::int64_t{0}); }

std::ostream& operator<<(std::ostream& out, const Shape& shape) { return out << shape.name; }

model_spec::ModelSpec spec_of(const Shape& shape) {
  model_spec::ModelSpec spec;
  spec.vocabulary = 64;
  spec.hidden = shape.hidden;
  spec.heads = shape.heads;
  spec.qk_dim = shape.qk_dim;
  spec.v_dim = shape.v_dim;
  spec.rotary_dim = shape.rotary_dim;
  spec.value_scale = 0.707;
  spec.ffn = spec.expert_ffn = shape.ffn;
  spec.experts = shape.experts;
  spec.top_k = shape.top_k;
  spec.router_groups = shape.groups;
  spec.router_scale = shape.router_scale;
  spec.layers = {{0, shape.experts > 0, shape.window, shape.kv_heads, 1e4, shape.sinks}};
  return spec;
}

at::Tensor random_tensor(at::IntArrayRef size, std::uint64_t seed, double scale) {
  auto out = at::empty(size, at::kFloat);
  auto* data = out.data_ptr<float>();
  for (std::int64_t i = 0; i < out.numel(); ++i) {
    data[i] = static_cast<float>(scale * normal(seed, 0, static_cast<std::uint64_t>(i), 4));
  }
  return out.to(at::kBFloat16).to(at::kFloat);
}

LayerTensors weights_of(const Shape& s, std::uint64_t seed) {
  const double scale = 1.5 / std::sqrt(s.hidden);
  const auto matrix = [&](std::int64_t rows, std::int64_t columns) {
    return random_tensor({rows, columns}, seed++, scale);
  };
  LayerTensors weights;
  weights.input_norm = random_tensor({s.hidden}, seed++, 0.3).add_(1).to(at::kBFloat16).to(at::kFloat);
  weights.post_norm = random_tensor({s.hidden}, seed++, 0.3).add_(1).to(at::kBFloat16).to(at::kFloat);
  weights.q_proj = matrix(s.heads * s.qk_dim, s.hidden);
  weights.k_proj = matrix(s.kv_heads * s.qk_dim, s.hidden);
  weights.v_proj = matrix(s.kv_heads * s.v_dim, s.hidden);
  weights.o_proj = matrix(s.hidden, s.heads * s.v_dim);
  if (s.sinks) weights.sinks = random_tensor({s.heads}, seed++);
  if (s.experts == 0) {
    weights.gate_proj = matrix(s.ffn, s.hidden);
    weights.up_proj = matrix(s.ffn, s.hidden);
    weights.down_proj = matrix(s.hidden, s.ffn);
    return weights;
  }
  weights.router = matrix(s.experts, s.hidden);
  weights.selection_bias = random_tensor({s.experts}, seed++, 0.2);
  for (int e = 0; e < s.experts; ++e) {
    weights.expert_gate_up.push_back(matrix(2 * s.ffn, s.hidden));
    weights.expert_down.push_back(matrix(s.hidden, s.ffn));
  }
  return weights;
}

void for_each_parameter(LayerTensors& t, const std::function<void(const std::string&, at::Tensor&)>& f) {
  const std::pair<const char*, at::Tensor*> named[] = {
      {"input_norm", &t.input_norm}, {"post_norm", &t.post_norm}, {"q_proj", &t.q_proj},      {"k_proj", &t.k_proj},
      {"v_proj", &t.v_proj},         {"o_proj", &t.o_proj},       {"sinks", &t.sinks},        {"router", &t.router},
      {"gate_proj", &t.gate_proj},   {"up_proj", &t.up_proj},     {"down_proj", &t.down_proj}};
  for (const auto& [name, tensor] : named) {
    if (tensor->defined()) f(name, *tensor);
  }
  for (std::size_t e = 0; e < t.expert_gate_up.size(); ++e) {
    f("expert_gate_up." + std::to_string(e), t.expert_gate_up[e]);
    f("expert_down." + std::to_string(e), t.expert_down[e]);
  }
}

LayerTensors converted(const LayerTensors& tensors, at::ScalarType dtype) {
  auto result = tensors;
  for_each_parameter(result, [&](const auto&, at::Tensor& tensor) { tensor = tensor.to(dtype).clone(); });
  return result;
}

LayerTensors filled_like(const LayerTensors& tensors, double value) {
  auto result = tensors;
  for_each_parameter(result,
                     [&](const auto&, at::Tensor& tensor) { tensor = at::full(tensor.sizes(), value, at::kFloat); });
  return result;
}

Row row_of(const std::vector<std::int64_t>& documents, std::int64_t vocabulary, std::uint64_t seed) {
  Row row;
  row.document_begin = {0};
  for (const auto length : documents) row.document_begin.push_back(row.document_begin.back() + length);
  const std::int64_t tokens = row.document_begin.back();
  row.tokens = at::empty({tokens}, at::kLong);
  row.targets = at::empty({tokens}, at::kLong);
  for (std::int64_t t = 0; t < tokens; ++t) {
    const double draw = uniform(seed, 0, static_cast<std::uint64_t>(t));
    row.tokens.data_ptr<std::int64_t>()[t] = static_cast<std::int64_t>(draw * static_cast<double>(vocabulary));
    row.targets.data_ptr<std::int64_t>()[t] = t % 7 == 3 ? -1 : static_cast<std::int64_t>(t * 5 % vocabulary);
  }
  return row;
}

Layer::Layer(const Shape& shape) : spec(spec_of(shape)), rotary(spec, shape.tokens()) {
  context = {&spec, &rotary, 0, 0, shape.experts};
}

LayerResult run_layer(const LayerContext& context, const LayerTensors& weights, const Row& row, const at::Tensor& input,
                      const at::Tensor& grad_output) {
  LayerResult result;
  result.expert_counts.resize(static_cast<std::size_t>(std::max(1, context.spec->experts)));
  result.saved.input = input;
  result.output = forward_layer(context, weights, row, input, &result.saved, result.expert_counts.data());
  result.gradients = filled_like(weights, 7);  // what is written must not depend on what was there
  const auto recomputed = recompute_layer(context, weights, row, result.saved);
  result.grad_input = backward_layer(context, weights, result.gradients, row, *recomputed, grad_output, false);
  return result;
}

void add_layer(const LayerContext& context, const LayerTensors& weights, const Row& row, const at::Tensor& input,
               const at::Tensor& grad_output, const LayerTensors& gradients) {
  SavedLayer saved{input, {}};
  forward_layer(context, weights, row, input, &saved, nullptr);
  const auto recomputed = recompute_layer(context, weights, row, saved);
  backward_layer(context, weights, gradients, row, *recomputed, grad_output, true);
}

double relative_error(const at::Tensor& a, const at::Tensor& b) {
  const auto exact = b.detach().to(at::kDouble);
  const double difference = (a.detach().to(at::kDouble) - exact).norm().item<double>();
  const double size = exact.norm().item<double>();
  return difference / std::max(size, 1.0);
}

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  const auto x = a.contiguous(), y = b.contiguous();
  return x.sizes() == y.sizes() && x.scalar_type() == y.scalar_type() &&
         std::memcmp(x.const_data_ptr(), y.const_data_ptr(), x.nbytes()) == 0;
}

std::string different_bits(LayerTensors a, LayerTensors b) {
  std::vector<at::Tensor> others;
  for_each_parameter(b, [&](const auto&, at::Tensor& tensor) { others.push_back(tensor); });
  std::string names;
  std::size_t i = 0;
  for_each_parameter(a, [&](const std::string& name, at::Tensor& tensor) {
    if (!same_bits(tensor, others.at(i++))) names += name + " ";
  });
  return names;
}

}  // namespace ganymede::worker::model::testing
