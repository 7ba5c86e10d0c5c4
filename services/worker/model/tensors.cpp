#include "services/worker/model/tensors.h"

#include <fmt/format.h>

#include "common/base/error.h"

namespace ganymede::worker::model {

namespace {

/// One matrix over `gate` and `up`, which lie next to each other in every buffer (storage order of the parameters).
at::Tensor joined(const at::Tensor& gate, const at::Tensor& up, const std::string& name) {
  if (!gate.defined()) return {};
  const auto* end = static_cast<const char*>(gate.const_data_ptr()) + gate.numel() * gate.element_size();
  GANYMEDE_CHECK(up.defined() && gate.is_contiguous() && up.is_contiguous() && end == up.const_data_ptr(),
                 "gate_proj and up_proj of {} do not lie next to each other", name);
  return at::from_blob(gate.data_ptr(), {gate.size(0) + up.size(0), gate.size(1)}, gate.options());
}

void bind_experts(const std::string& mlp, int first_expert, int local_experts, const TensorByName& tensor,
                  LayerTensors& layer) {
  for (int expert = first_expert; expert < first_expert + local_experts; ++expert) {
    const auto name = fmt::format("{}.experts.{}", mlp, expert);
    layer.expert_gate_up.push_back(joined(tensor(name + ".gate_proj.weight"), tensor(name + ".up_proj.weight"), name));
    layer.expert_down.push_back(tensor(name + ".down_proj.weight"));
  }
}

}  // namespace

LayerTensors bind_layer(const model_spec::ModelSpec& spec, int layer, int first_expert, int local_experts,
                        const TensorByName& tensor) {
  const auto prefix = fmt::format("model.layers.{}", layer);
  const auto attention = prefix + ".self_attn", mlp = prefix + ".mlp";
  const auto& kind = spec.layers.at(static_cast<std::size_t>(layer));
  LayerTensors bound;
  bound.input_norm = tensor(prefix + ".input_layernorm.weight");
  bound.post_norm = tensor(prefix + ".post_attention_layernorm.weight");
  bound.q_proj = tensor(attention + ".q_proj.weight");
  bound.k_proj = tensor(attention + ".k_proj.weight");
  bound.v_proj = tensor(attention + ".v_proj.weight");
  bound.o_proj = tensor(attention + ".o_proj.weight");
  if (kind.sinks) bound.sinks = tensor(attention + ".attention_sink_bias");
  if (kind.moe) {
    bound.router = tensor(mlp + ".gate.weight");
    bound.selection_bias = tensor(mlp + ".gate.e_score_correction_bias");
    bind_experts(mlp, first_expert, local_experts, tensor, bound);
  } else {
    bound.gate_proj = tensor(mlp + ".gate_proj.weight");
    bound.up_proj = tensor(mlp + ".up_proj.weight");
    bound.down_proj = tensor(mlp + ".down_proj.weight");
  }
  return bound;
}

}  // namespace ganymede::worker::model
