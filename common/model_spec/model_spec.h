#pragma once

#include "common/config/config.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

/// What a model is made of, derived from the configuration: layers and named parameters. Pure data.
namespace ganymede::model_spec {

struct LayerSpec {
  int index = 0;
  bool moe = false;
  int window = 0;  // tokens seen, itself included; 0: all of the document
  int kv_heads = 1;
  double rope_theta = 1e4;
  bool sinks = false;
};

struct ModelSpec {
  int vocabulary = 0, hidden = 0, heads = 0, qk_dim = 0, v_dim = 0;
  int rotary_dim = 0;  // first dims of q and k that are rotated; even
  double value_scale = 1, norm_eps = 1e-5;
  int ffn = 0, experts = 0, top_k = 0, expert_ffn = 0;
  int router_groups = 1;  // equal groups of neighbouring experts; a token visits top_k / router_groups of each
  double router_scale = 1, bias_update_rate = 0;
  std::vector<LayerSpec> layers;
};

/// The unit of gathering, reducing and updating that a parameter belongs to.
enum class BucketKind { embed, dense, experts, head };

enum class InitKind { zeros, ones, truncated_normal };

/// How the update treats a parameter.
enum class UpdateKind { decayed, undecayed, selection_bias };

/// Whose rows the projection of queries or keys has: `rows` neighbouring ones of each head, head after head.
struct HeadRows {
  enum class Role : std::uint8_t { none, query, key } role = Role::none;
  int query_heads = 0, key_heads = 0;  // of the layer; query head h looks at key head h / (query_heads / key_heads)
  int rows = 0;                        // of one head
};

struct ParameterSpec {
  std::string name;                 // Hugging Face name, e.g. "model.layers.3.mlp.experts.5.gate_proj.weight"
  std::vector<std::int64_t> shape;  // logical matrix: [rows, cols], or [size]
  BucketKind bucket = BucketKind::dense;
  int layer = -1;   // -1 outside layers
  int expert = -1;  // -1 outside experts
  InitKind init = InitKind::truncated_normal;
  double init_std = 0;
  UpdateKind update = UpdateKind::decayed;
  HeadRows heads = {};

  /// A weight matrix inside a layer other than the router: what optimizers of matrices (Muon) are made for. Embedding,
  /// head, norms, biases, sinks and the router are none.
  bool hidden_matrix() const;
  std::int64_t elements() const;
  std::int64_t rows() const { return shape[0]; }
  std::int64_t row_elements() const { return elements() / shape[0]; }
};

ModelSpec build(const config::Model& model);

/// All parameters in storage order: embed; per layer the dense ones, then experts one after another
/// (gate, up, down of one expert next to each other); final norm and head.
std::vector<ParameterSpec> parameters(const config::Model& model);

/// Initial value of one element: a pure function of (seed, name, element index), so it does not depend on how
/// the model is sharded.
float initial_value(const ParameterSpec& parameter, std::uint64_t seed, std::int64_t element);

/// The same for elements first … first + values.size() - 1, with the same bits, some 15 ns each.
void initial_values(const ParameterSpec& parameter, std::uint64_t seed, std::int64_t first, std::span<float> values);

/// Parameters in all and those that one token uses (for model FLOP utilisation).
struct ParameterCount {
  std::int64_t total = 0, active = 0;
};
ParameterCount count(const config::Model& model);

/// Mean over the positions of a row that is one document of how many tokens one token attends to.
double attended_tokens(const LayerSpec& layer, int seq_len);

/// Floating-point operations of forward and backward (without recomputation) per token: 6 per active matrix
/// parameter (embedding look-up excluded) and 12 · heads · mean head dim · attended tokens for attention.
double flops_per_token(const config::Model& model, int seq_len);

/// One line a person reads: "5.1M parameters, 1.9M active, 6 layers (1 dense, 5 MoE), hidden 192".
std::string describe(const config::Model& model);

}  // namespace ganymede::model_spec
