#include <cmath>
#include <utility>

#include "common/base/error.h"
#include "common/plan/builder.h"
#include "common/plan/kept.h"
#include "common/plan/plan.h"

namespace ganymede::plan {
namespace {

/// Hidden states and saved inputs of all rows, and the passes over the layers.
class Passes {
 public:
  Passes(Builder& builder, int rows)
      : builder_(builder),
        rows_(rows),
        hidden_(hidden_bytes(builder.config)),
        offloaded_(offloaded_layers(builder.config)),
        recompute_(builder.config.recompute != config::Recompute::none),
        input_(rows, -1),
        grad_(rows, -1),
        saved_(builder.layers, std::vector<Saved>(rows)) {}

  /// What is kept of a layer and row for its backward.
  struct Saved {
    int input = -1, indices = -1, activations = -1, arena = -1;
  };

  void embed();
  void forward(int layer, bool keep);
  void offload(int layer);
  int head_loss();  // its last operation
  void head_backward();
  void prefetch(int layer);
  void backward(int layer);
  void embed_backward();

 private:
  int new_hidden(BufferKind kind, const char* what, int layer, int row) {
    return builder_.new_buffer(kind, fmt::format("{} layer.{} row {}", what, layer, row), hidden_, -1, layer, row);
  }
  void keep_activations(Operation& forward, Saved& saved);
  Operation compute(OperationKind kind, int layer, int row) {
    return Operation{.kind = kind, .lane = Lane::compute, .layer = layer, .row = row};
  }

  Builder& builder_;
  int rows_;
  std::int64_t hidden_;
  int offloaded_;
  bool recompute_;
  std::vector<int> input_;  // per row: the newest hidden state
  std::vector<int> grad_;   // per row: gradient by the newest hidden state
  std::vector<std::vector<Saved>> saved_;
};

void Passes::embed() {
  for (int r = 0; r < rows_; ++r) {
    Operation forward = compute(OperationKind::forward, -1, r);
    builder_.read_parameters(forward, -1);
    forward.after.push_back(0);  // wait_batch
    forward.takes.push_back(input_[r] = new_hidden(BufferKind::saved_input, "input", 0, r));
    builder_.add(std::move(forward));
  }
}

void Passes::forward(int layer, bool keep) {
  bool moe = builder_.config.model.experts > 0 && layer >= builder_.config.model.dense_layers;
  for (int r = 0; r < rows_; ++r) {
    Operation forward = compute(OperationKind::forward, layer, r);
    builder_.read_parameters(forward, layer);
    Saved& saved = saved_[layer][r];
    saved.input = input_[r];
    (keep ? forward.uses : forward.frees).push_back(saved.input);
    forward.takes.push_back(input_[r] = new_hidden(BufferKind::saved_input, "input", layer + 1, r));
    if (keep && moe) {
      std::int64_t bytes = std::int64_t{builder_.config.data.seq_len} * builder_.config.model.top_k * 4;
      saved.indices = builder_.new_buffer(BufferKind::saved_indices, fmt::format("indices layer.{} row {}", layer, r),
                                          bytes, -1, layer, r);
      forward.takes.push_back(saved.indices);
    }
    if (keep) keep_activations(forward, saved);
    builder_.add(std::move(forward));
  }
}

void Passes::keep_activations(Operation& forward, Saved& saved) {
  std::int64_t bytes = kept_activations(builder_.config, forward.layer).bytes;
  if (bytes == 0) return;
  saved.activations = builder_.new_buffer(BufferKind::saved_activations,
                                          fmt::format("activations layer.{} row {}", forward.layer, forward.row), bytes,
                                          -1, forward.layer, forward.row);
  forward.takes.push_back(saved.activations);
}

void Passes::offload(int layer) {
  if (layer < 0 || layer >= offloaded_) return;
  for (int r = 0; r < rows_; ++r) {
    Saved& saved = saved_[layer][r];
    Operation offload{
        .kind = OperationKind::offload, .lane = Lane::to_host, .layer = layer, .bytes = hidden_, .row = r};
    offload.takes.push_back(saved.arena = new_hidden(BufferKind::arena, "arena", layer, r));
    offload.frees.push_back(saved.input);
    builder_.add(std::move(offload));
  }
}

int Passes::head_loss() {
  int last = -1;
  for (int r = 0; r < rows_; ++r) {
    Operation loss = compute(OperationKind::forward, builder_.layers, r);
    builder_.read_parameters(loss, builder_.layers);
    loss.frees.push_back(input_[r]);
    last = builder_.add(std::move(loss));
  }
  return last;
}

void Passes::head_backward() {
  for (int r = 0; r < rows_; ++r) {
    Operation backward = compute(OperationKind::backward, builder_.layers, r);
    builder_.read_parameters(backward, builder_.layers);
    builder_.write_gradients(backward, builder_.layers);
    backward.takes.push_back(grad_[r] = new_hidden(BufferKind::scratch, "hidden gradient", builder_.layers, r));
    backward.frees.push_back(input_[r]);
    builder_.add(std::move(backward));
  }
}

void Passes::prefetch(int layer) {
  if (layer < 0 || layer >= offloaded_) return;
  for (int r = 0; r < rows_; ++r) {
    Saved& saved = saved_[layer][r];
    Operation prefetch{
        .kind = OperationKind::prefetch, .lane = Lane::to_device, .layer = layer, .bytes = hidden_, .row = r};
    prefetch.uses.push_back(saved.arena);
    builder_.give_back_later(saved.arena);
    prefetch.takes.push_back(saved.input = new_hidden(BufferKind::saved_input, "input", layer, r));
    builder_.add(std::move(prefetch));
  }
}

void Passes::backward(int layer) {
  for (int r = 0; r < rows_; ++r) {
    const Saved& saved = saved_[layer][r];
    if (recompute_) {
      Operation recompute = compute(OperationKind::recompute, layer, r);
      builder_.read_parameters(recompute, layer);
      recompute.uses.push_back(saved.input);
      if (saved.indices >= 0) recompute.uses.push_back(saved.indices);
      if (saved.activations >= 0) recompute.uses.push_back(saved.activations);
      builder_.add(std::move(recompute));
    }

    Operation backward = compute(OperationKind::backward, layer, r);
    builder_.read_parameters(backward, layer);
    builder_.write_gradients(backward, layer);
    backward.uses.push_back(grad_[r]);
    backward.frees.push_back(saved.input);
    if (saved.indices >= 0) backward.frees.push_back(saved.indices);
    if (saved.activations >= 0) backward.frees.push_back(saved.activations);
    builder_.add(std::move(backward));
  }
}

void Passes::embed_backward() {
  for (int r = 0; r < rows_; ++r) {
    Operation backward = compute(OperationKind::backward, -1, r);
    builder_.write_gradients(backward, -1);
    backward.frees.push_back(grad_[r]);
    builder_.add(std::move(backward));
  }
}

/// Forward through embedding and layers; the parameters of a layer are gathered while the one before computes. In
/// the train plan the last layer stays for its backward, and each layer's inputs go to the arena one layer later.
void forward_pass(Builder& builder, Passes& passes, bool train) {
  builder.add({.kind = OperationKind::wait_batch, .lane = Lane::host});
  builder.gather(-1);
  builder.gather(0);
  passes.embed();
  builder.release(-1);
  for (int l = 0; l < builder.layers; ++l) {
    builder.gather(l + 1);
    passes.forward(l, train);
    if (train) passes.offload(l - 1);
    if (!train || l + 1 < builder.layers) builder.release(l);
  }
  if (train) passes.offload(builder.layers - 1);
}

/// Backward from head to embedding. A bucket's reduction is listed before the backward of the next layer and gives its
/// buffers back behind it, so that it runs beside it.
void backward_pass(Builder& builder, Passes& passes) {
  passes.prefetch(builder.layers - 1);
  passes.head_backward();
  builder.release(builder.layers);
  for (int l = builder.layers - 1; l >= 0; --l) {
    if (l > 0) builder.gather(l - 1);
    passes.prefetch(l - 1);
    builder.reduce(l + 1);
    passes.backward(l);
    builder.release(l);
  }
  builder.reduce(0);
  passes.embed_backward();
  builder.reduce(-1);
  builder.release(-1);
}

void finish_train(Builder& builder) {
  builder.add({.kind = OperationKind::wait_update, .lane = Lane::host});
  Operation vote{.kind = OperationKind::vote, .lane = Lane::host};
  vote.after = builder.norms;
  int voted = builder.add(std::move(vote));
  Operation decide{.kind = OperationKind::decide, .lane = Lane::host};
  decide.after.push_back(voted);
  builder.add(std::move(decide));
}

}  // namespace

bool in_place(const placement::Bucket& bucket) { return bucket.whole(); }

int offloaded_layers(const config::Config& config) {
  // A fraction such as 0.07 of 100 layers must not become 8 through its last binary digit.
  return static_cast<int>(std::ceil(config.offload.fraction * config.model.layers - 1e-9));
}

std::int64_t hidden_bytes(const config::Config& config) {
  std::int64_t element = config.compute.dtype == config::Dtype::bf16 ? 2 : 4;
  std::int64_t bytes = std::int64_t{config.data.seq_len} * config.model.hidden * element;
  return (bytes + buffer_alignment - 1) / buffer_alignment * buffer_alignment;
}

namespace {

void require_one_format(const config::Config& config) {
  using config::ParameterWire;
  ParameterWire computed = config.compute.dtype == config::Dtype::bf16 ? ParameterWire::bf16 : ParameterWire::fp32;
  bool experts_fit = config.wire.expert_gather == computed || config.wire.expert_gather == ParameterWire::fp8;
  if (config.wire.dense_gather == computed && experts_fit) return;
  fail_usage(
      "compute.dtype differs from wire.dense_gather or wire.expert_gather; parameters are computed with as they are "
      "gathered: set all to fp32 or all to bf16, wire.expert_gather to fp8 if you like");
}

}  // namespace

StepPlan build(const config::Config& config, const placement::Placement& placement, PlanKind kind) {
  require_one_format(config);
  Builder builder(config, placement);
  if (kind == PlanKind::validate) {
    int rows = (config.validation.rows + placement.world - 1) / placement.world;
    Passes passes(builder, rows);
    forward_pass(builder, passes, false);
    Operation vote{.kind = OperationKind::vote, .lane = Lane::host};
    vote.after.push_back(passes.head_loss());
    builder.release(builder.layers);
    builder.add(std::move(vote));
    return builder.finish();
  }
  Passes passes(builder, placement::rows_of(config, placement.rank).count);
  forward_pass(builder, passes, true);
  backward_pass(builder, passes);
  finish_train(builder);
  return builder.finish();
}

}  // namespace ganymede::plan
