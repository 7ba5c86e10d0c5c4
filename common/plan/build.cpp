#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "common/base/error.h"
#include "common/model_spec/model_spec.h"
#include "common/plan/matrix_updates.h"
#include "common/plan/passes.h"
#include "common/plan/plan.h"

namespace ganymede::plan {
namespace {

/// The growing plan of one step or validation.
struct Step {
  Step(const config::Config& config, const placement::Placement& placement, PlanKind kind, int rows)
      : builder(config, placement),
        waited_update(begin(kind)),
        parameters(builder, kind, waited_update),
        gradients(builder),
        passes(builder, parameters, gradients, rows),
        layers(builder.layers),
        train(kind == PlanKind::train) {}

  void forward();
  void backward(bool last);
  int head_loss();  // its last operation
  StepPlan finish_train();
  StepPlan finish_validation(int loss);

  Builder builder;
  int waited_update;  // -1: gathers need not wait for all updates
  Parameters parameters;
  Gradients gradients;
  Passes passes;
  const int layers;
  const bool train;

 private:
  int begin(PlanKind kind);
  /// Gives back what transfers have used up, and a layer's parameters if they are not needed at once.
  void done(int layer, bool with_parameters) {
    if (with_parameters) return parameters.release(layer);
    builder.release(layer);
  }
};

/// The batch, and, unless updates and forward overlap, all updates of the step before.
int Step::begin(PlanKind kind) {
  builder.add({.kind = OperationKind::wait_batch, .lane = Lane::host});
  if (kind != PlanKind::train || builder.config.stream_update) return -1;
  return builder.add({.kind = OperationKind::wait_update, .lane = Lane::host});
}

/// Forward through embedding and layers; the parameters of a layer are gathered while the one before computes. In
/// the train plan the last layer stays for its backward, and each layer's inputs go to the arena one layer later.
void Step::forward() {
  bool ahead = parameters.ahead();
  parameters.gather(-1);
  if (ahead) parameters.gather(0);
  passes.embed();
  parameters.release(-1);
  for (int l = 0; l < layers; ++l) {
    parameters.gather(ahead ? l + 1 : l);
    passes.forward(l, train);
    if (train) passes.offload(l - 1);
    if (!train || l + 1 < layers) parameters.release(l);
  }
  if (train) passes.offload(layers - 1);
  parameters.gather(layers);
  parameters.end_of_pass();
}

/// Backward from head to embedding. A bucket's reduction (in the last backward of a step, or in each) is listed before
/// the backward of the next layer and gives its buffers back behind it, so that it runs beside it. In all but the last
/// the first layer stays for the forward that follows.
void Step::backward(bool last) {
  bool ahead = parameters.ahead(), embedding = !builder.config.reuse_embedding;
  passes.prefetch(layers - 1);
  passes.head_backward();
  parameters.release(layers);
  for (int l = layers - 1; l >= 0; --l) {
    if (!ahead) parameters.gather(l);
    if (ahead && (l > 0 || embedding || !last)) parameters.gather(l - 1);
    passes.prefetch(l - 1);
    gradients.reduce(l + 1, last);
    passes.backward(l);
    done(l, last || l > 0);
  }
  gradients.reduce(0, last);
  if (!ahead && embedding) parameters.gather(-1);
  passes.embed_backward(embedding);
  gradients.reduce(-1, last);
  done(-1, last);
  parameters.end_of_pass();
}

int Step::head_loss() {
  int loss = passes.head_loss();
  parameters.release(layers);
  parameters.end_of_pass();
  return loss;
}

StepPlan Step::finish_train() {
  parameters.end_of_plan();
  Operation vote{.kind = OperationKind::vote, .lane = Lane::host};
  vote.after = gradients.end();
  if (builder.config.stream_update) builder.add({.kind = OperationKind::wait_update, .lane = Lane::host});
  int voted = builder.add(std::move(vote));
  Operation decide{.kind = OperationKind::decide, .lane = Lane::host};
  decide.after.push_back(voted);
  int decided = builder.add(std::move(decide));
  add_matrix_updates(builder, decided);
  return builder.finish();
}

StepPlan Step::finish_validation(int loss) {
  Operation vote{.kind = OperationKind::vote, .lane = Lane::host};
  vote.after.push_back(loss);
  parameters.end_of_plan();
  builder.add(std::move(vote));
  return builder.finish();
}

}  // namespace

bool in_place(const placement::Bucket& bucket) { return bucket.whole(); }

std::int64_t rotary_bytes(const config::Config& config) {
  model_spec::ModelSpec spec = model_spec::build(config.model);
  std::set<double> bases;
  for (const model_spec::LayerSpec& layer : spec.layers) bases.insert(layer.rope_theta);
  std::size_t tables = config.rope_cache == config::RopeCache::shared ? bases.size() : spec.layers.size();
  return static_cast<std::int64_t>(tables) * config.data.seq_len * (spec.rotary_dim / 2) * 2 * 4;  // cos and sin
}

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
  if (kind == PlanKind::update) {
    Builder builder(config, placement);
    add_matrix_updates(builder, -1);
    return builder.finish();
  }
  if (kind == PlanKind::skip) {
    Builder builder(config, placement);
    for (OperationKind one :
         {OperationKind::wait_batch, OperationKind::wait_update, OperationKind::vote, OperationKind::decide})
      builder.add({.kind = one, .lane = Lane::host});
    return builder.finish();
  }
  bool train = kind == PlanKind::train;
  int rows = train ? placement::rows_of(config, placement.rank).count
                   : (config.validation.rows + placement.world - 1) / placement.world;
  Step step(config, placement, kind, rows);
  int loss = -1, of_one = micro_batch_rows(config, rows);
  for (int first = 0; first < rows; first += of_one) {
    int end = std::min(rows, first + of_one);
    step.passes.take_rows(first, end);
    step.forward();
    if (train) {
      step.backward(end == rows);
    } else {
      loss = step.head_loss();
    }
  }
  return train ? step.finish_train() : step.finish_validation(loss);
}

}  // namespace ganymede::plan
