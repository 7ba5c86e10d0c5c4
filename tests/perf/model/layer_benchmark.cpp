#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>

#include <cstdlib>

#include "tests/numerics/model/sample.h"

namespace ganymede::worker::model::testing {
namespace {

constexpr std::int64_t tokens = 1024, vocabulary = 8192;

Shape small(int window) {
  Shape s;
  s.documents = {tokens};
  s.hidden = 512;
  s.heads = s.kv_heads = 8;
  s.qk_dim = s.v_dim = 64;
  s.rotary_dim = 20;
  s.window = window;
  s.experts = 32;
  s.top_k = 4;
  s.ffn = 256;
  return s;
}

/// Floating-point operations of one forward pass of the layer.
double forward_flops(const Shape& s) {
  const double projections = 4.0 * s.hidden * s.heads * s.qk_dim + s.hidden * s.experts;
  const double experts = 3.0 * s.hidden * s.ffn * s.top_k;
  const double seen = s.window > 0 ? s.window : (tokens + 1) / 2.0;
  return 2 * tokens * (projections + experts + seen * s.heads * (s.qk_dim + s.v_dim));
}

struct Bench {
  Shape s;
  Layer layer;
  LayerTensors weights, gradients;
  Row row = row_of({tokens}, vocabulary);
  at::Tensor input, grad;

  Bench(bool bf16, int window) : s(small(window)), layer(s) {
    const auto dtype = bf16 ? at::kBFloat16 : at::kFloat;
    const char* threads = std::getenv("OMP_NUM_THREADS");
    at::set_num_threads(threads != nullptr ? std::atoi(threads) : 2);
    weights = converted(weights_of(s), dtype);
    gradients = filled_like(weights, 0);
    input = random_tensor({tokens, s.hidden}, 1).to(dtype);
    grad = random_tensor({tokens, s.hidden}, 2).to(dtype);
  }
};

void report(benchmark::State& state, double flops) {
  state.counters["GFLOP/s"] =
      benchmark::Counter(flops / 1e9 * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

void Forward(benchmark::State& state) {
  Bench b(state.range(0) == 1, static_cast<int>(state.range(1)));
  for (auto _ : state) {
    SavedLayer saved{b.input, {}};
    benchmark::DoNotOptimize(forward_layer(b.layer.context, b.weights, b.row, b.input, &saved, nullptr));
  }
  report(state, forward_flops(b.s));
}

void RecomputeAndBackward(benchmark::State& state) {
  Bench b(state.range(0) == 1, static_cast<int>(state.range(1)));
  SavedLayer saved{b.input, {}};
  forward_layer(b.layer.context, b.weights, b.row, b.input, &saved, nullptr);
  for (auto _ : state) {
    const auto recomputed = recompute_layer(b.layer.context, b.weights, b.row, saved);
    benchmark::DoNotOptimize(
        backward_layer(b.layer.context, b.weights, b.gradients, b.row, *recomputed, b.grad, false));
  }
  report(state, 3 * forward_flops(b.s));
}

void Recompute(benchmark::State& state) {
  Bench b(state.range(0) == 1, static_cast<int>(state.range(1)));
  SavedLayer saved{b.input, {}};
  forward_layer(b.layer.context, b.weights, b.row, b.input, &saved, nullptr);
  for (auto _ : state) benchmark::DoNotOptimize(recompute_layer(b.layer.context, b.weights, b.row, saved));
}

void HeadForwardBackward(benchmark::State& state) {
  const auto dtype = state.range(0) == 1 ? at::kBFloat16 : at::kFloat;
  Bench b(state.range(0) == 1, 0);
  const HeadTensors weights = {at::ones({b.s.hidden}, dtype),
                               random_tensor({vocabulary, b.s.hidden}, 3, 0.02).to(dtype)};
  const HeadTensors grads = {at::empty({b.s.hidden}), at::empty({vocabulary, b.s.hidden})};
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        head_forward_backward(b.layer.spec, weights, grads, b.row, b.input, 1e-3, state.range(1), false).loss_sum);
  }
  report(state, 6.0 * tokens * vocabulary * b.s.hidden);
}

BENCHMARK(Forward)->ArgsProduct({{0, 1}, {0, 128}})->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(Recompute)->ArgsProduct({{0, 1}, {0, 128}})->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(RecomputeAndBackward)->ArgsProduct({{0, 1}, {0, 128}})->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(HeadForwardBackward)->ArgsProduct({{0, 1}, {512}})->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace ganymede::worker::model::testing
