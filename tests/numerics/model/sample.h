#pragma once

#include <ostream>
#include <string>

#include "services/worker/model/ends.h"
#include "services/worker/model/layer.h"

/// Small layers and rows from a fixed seed.
namespace ganymede::worker::model::testing {

struct Shape {
  std::string name;
  std::vector<std::int64_t> documents;  // lengths
  int hidden = 24, heads = 4, kv_heads = 2, qk_dim = 12, v_dim = 8, rotary_dim = 4;
  int window = 0;
  bool sinks = true;
  int experts = 6, top_k = 2, groups = 1, ffn = 16;  // experts 0: dense
  double router_scale = 1.5;

  std::int64_t tokens() const;
};

std::ostream& operator<<(std::ostream& out, const Shape& shape);

model_spec::ModelSpec spec_of(const Shape& shape);

/// fp32 weights of the shape's one layer, rounded to bf16, so that both compute types start from the same values.
LayerTensors weights_of(const Shape& shape, std::uint64_t seed = 1);

/// Calls f(name, tensor) for all tensors that have a gradient, in one order. f may assign.
void for_each_parameter(LayerTensors& tensors, const std::function<void(const std::string&, at::Tensor&)>& f);
LayerTensors converted(const LayerTensors& tensors, at::ScalarType dtype);
/// fp32 tensors of the same shapes filled with `value`.
LayerTensors filled_like(const LayerTensors& tensors, double value);

Row row_of(const std::vector<std::int64_t>& documents, std::int64_t vocabulary, std::uint64_t seed = 3);
at::Tensor random_tensor(at::IntArrayRef size, std::uint64_t seed, double scale = 1);

/// A layer with all that its context points to.
struct Layer {
  explicit Layer(const Shape& shape);
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;

  model_spec::ModelSpec spec;
  RotaryTables rotary;
  LayerContext context;
};

/// Everything that a layer computes for one row: forward, recomputation and backward.
struct LayerResult {
  at::Tensor output, grad_input;
  LayerTensors gradients;
  SavedLayer saved;
  std::vector<std::int64_t> expert_counts;
};
LayerResult run_layer(const LayerContext& context, const LayerTensors& weights, const Row& row, const at::Tensor& input,
                      const at::Tensor& grad_output);
/// The same with gradients added to `gradients`.
void add_layer(const LayerContext& context, const LayerTensors& weights, const Row& row, const at::Tensor& input,
               const at::Tensor& grad_output, const LayerTensors& gradients);

/// ‖a - b‖ / ‖b‖ in fp64, with ‖b‖ taken as at least 1: the true value may be 0.
double relative_error(const at::Tensor& a, const at::Tensor& b);
bool same_bits(const at::Tensor& a, const at::Tensor& b);
/// Names of the parameters whose gradients differ in any bit; empty: none.
std::string different_bits(LayerTensors a, LayerTensors b);

}  // namespace ganymede::worker::model::testing
