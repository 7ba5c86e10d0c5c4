#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/model_spec/model_spec.h"

/// What the model functions work on: views of the plan's buffers by role, and one row of text. T = tokens of a row,
/// H = hidden, E = experts, L = experts of this rank's place, K = top-k, F = hidden size of a feed-forward network.
namespace ganymede::worker::model {

/// Weights of one layer, or fp32 gradients of the same shapes. Views: nothing is owned. What a layer lacks is an
/// undefined tensor.
struct LayerTensors {
  at::Tensor input_norm, post_norm;           // [H]
  at::Tensor q_proj, k_proj, v_proj, o_proj;  // [out, in]
  at::Tensor sinks;                           // [heads]
  at::Tensor router;                          // [E, H]
  at::Tensor selection_bias;                  // [E], fp32 in both; has no gradient
  at::Tensor gate_proj, up_proj, down_proj;   // dense layers: [F, H], [F, H], [H, F]
  std::vector<at::Tensor> expert_gate_up;     // [L] of [2F, H]: gate rows above up rows (they lie next to each other)
  std::vector<at::Tensor> expert_down;        // [L] of [H, F]
};

/// Looks up a parameter's view by its full name ("model.layers.3.self_attn.q_proj.weight"); undefined if absent.
using TensorByName = std::function<at::Tensor(const std::string& name)>;

/// Binds the tensors of one layer. `first_expert`, `local_experts`: the block of this rank's place.
LayerTensors bind_layer(const model_spec::ModelSpec& spec, int layer, int first_expert, int local_experts,
                        const TensorByName& tensor);

/// One packed row. Attention never crosses a document; positions restart with each.
struct Row {
  at::Tensor tokens;                         // int64 [T]
  at::Tensor targets;                        // int64 [T], -1 where no loss is taken
  std::vector<std::int64_t> document_begin;  // first token of each document, then T
};

/// cos and sin of rotary angles, [longest, rotary_dim / 2] fp32: one table per theta, shared by all layers that have
/// it; or one per layer, with the same values.
class RotaryTables {
 public:
  RotaryTables(const model_spec::ModelSpec& spec, std::int64_t longest, bool one_a_layer = false);
  struct Table {
    at::Tensor cos, sin;
  };
  const Table& table(int layer) const { return tables_[of_layer_.at(static_cast<std::size_t>(layer))]; }
  std::int64_t bytes() const;  // of all tables

 private:
  std::vector<Table> tables_;
  std::vector<std::size_t> of_layer_;
};

}  // namespace ganymede::worker::model
