#include "services/worker/engine/bindings.h"

#include <algorithm>

#include "common/base/error.h"
#include "common/plan/kept.h"

namespace ganymede::worker {
namespace {

constexpr const char* embed_name = "model.embed_tokens.weight";
constexpr const char* norm_name = "model.norm.weight";
constexpr const char* head_name = "lm_head.weight";

at::Tensor& tensor_of(model::KeptLayer& kept, plan::Kept what) {
  switch (what) {
    case plan::Kept::attention:
      return kept.attention;
    case plan::Kept::log_sum:
      return kept.log_sum;
    case plan::Kept::normed:
      return kept.normed;
    case plan::Kept::middle:
      return kept.middle;
    case plan::Kept::feed_input:
      return kept.feed_input;
    case plan::Kept::query:
      return kept.query;
    case plan::Kept::key:
      return kept.key;
    case plan::Kept::value:
      return kept.value;
    case plan::Kept::scores:
      return kept.scores;
    case plan::Kept::gate:
      return kept.gate;
    case plan::Kept::up:
      return kept.up;
    case plan::Kept::gate_up:
      return kept.gate_up;
    case plan::Kept::choices:
      return kept.choices;
    case plan::Kept::received_rows:
      return kept.received_rows;
    case plan::Kept::received_choices:
      return kept.received_choices;
  }
  impossible(__FILE__, __LINE__, "a kept activation that does not exist");
}

}  // namespace

Bindings::Bindings(const Workbench& bench, const plan::StepPlan& plan)
    : bench_(bench), plan_(plan), type_(scalar_type(bench.config.compute.dtype)) {
  for (std::size_t b = 0; b < bench.placement.buckets.size(); ++b) {
    const placement::Bucket& bucket = bench.placement.buckets[b];
    std::vector<Gap> gaps;
    std::int64_t end = 0;
    for (const placement::PlacedParameter& placed : bucket.parameters) {
      const model_spec::ParameterSpec& parameter = bench.placement.parameters[placed.parameter];
      places_[parameter.name] = {static_cast<int>(b), placed.offset, &parameter};
      if (placed.offset > end) gaps.push_back({end, placed.offset - end});
      if (parameter.update == model_spec::UpdateKind::selection_bias) {
        gaps.push_back({placed.offset, parameter.elements()});
      }
      end = placed.offset + parameter.elements();
    }
    if (bucket.elements > end) gaps.push_back({end, bucket.elements - end});
    gaps_.push_back(std::move(gaps));
  }
}

at::Tensor Bindings::view(const plan::Operation& operation, const std::string& name, bool gradient) const {
  auto found = places_.find(name);
  if (found == places_.end()) return {};
  const Place& place = found->second;
  const placement::Bucket& bucket = bench_.placement.buckets[place.bucket];
  std::int64_t element = gradient ? 4 : at::elementSize(type_);
  std::byte* base = nullptr;
  int buffer = find_buffer(plan_, operation, gradient ? plan::BufferKind::gradients : plan::BufferKind::parameters,
                           place.bucket, -1);
  if (buffer >= 0) {
    base = bench_.pool + plan_.buffers[buffer].offset;
  } else if (!plan::in_place(bucket)) {
    return {};
  } else if (gradient) {
    base = reinterpret_cast<std::byte*>(bench_.cell.gradients.data() + bucket.shard_offset);
  } else {
    base = bench_.cell.working.data() + bench_.cell.working_form.offset[place.bucket];
  }
  return at::from_blob(base + place.offset * element, place.parameter->shape, gradient ? at::kFloat : type_);
}

Bindings::Layer& Bindings::layer(int index) {
  auto [at, added] = layers_.try_emplace(index);
  if (!added) return at->second;
  const plan::Operation& operation = plan_.operations[index];
  auto bind = [&](bool gradient) {
    return model::bind_layer(bench_.spec, operation.layer, bench_.placement.first_expert,
                             bench_.placement.local_experts,
                             [&](const std::string& name) { return view(operation, name, gradient); });
  };
  at->second.weights = bind(false);
  at->second.selection_bias = at->second.weights.selection_bias;
  if (operation.kind == plan::OperationKind::backward) at->second.gradients = bind(true);
  return at->second;
}

model::HeadTensors Bindings::head(const plan::Operation& operation, bool gradient) const {
  return {view(operation, norm_name, gradient), view(operation, head_name, gradient)};
}
model::HeadTensors Bindings::head_weights(const plan::Operation& operation) const { return head(operation, false); }
model::HeadTensors Bindings::head_gradients(const plan::Operation& operation) const { return head(operation, true); }

at::Tensor Bindings::embed_weight(const plan::Operation& operation) const { return view(operation, embed_name, false); }
at::Tensor Bindings::embed_gradient(const plan::Operation& operation) const {
  return view(operation, embed_name, true);
}

at::Tensor Bindings::hidden(int buffer) const {
  return at::from_blob(bench_.pool + plan_.buffers[buffer].offset,
                       {bench_.config.data.seq_len, bench_.config.model.hidden},
                       scalar_type(bench_.config.compute.dtype));
}

at::Tensor Bindings::indices(int buffer) const {
  return at::from_blob(bench_.pool + plan_.buffers[buffer].offset,
                       {bench_.config.data.seq_len, bench_.config.model.top_k}, at::kInt);
}

model::KeptLayer Bindings::kept(const plan::Operation& operation) const {
  model::KeptLayer kept;
  int buffer = find_buffer(plan_, operation, plan::BufferKind::saved_activations, -1, operation.layer);
  if (buffer < 0) return kept;
  const plan::Buffer& place = plan_.buffers[buffer];
  for (const plan::KeptPart& part : plan::kept_activations(bench_.config, place.layer).parts) {
    bool choices = part.what == plan::Kept::choices || part.what == plan::Kept::received_choices;
    at::ScalarType type = choices ? at::kInt : part.fp32 ? at::kFloat : type_;
    tensor_of(kept, part.what) = at::from_blob(bench_.pool + place.offset + part.offset, part.shape, type);
  }
  if (kept.received_rows.defined()) {
    std::int64_t tokens = bench_.config.data.seq_len;
    kept.feed_input = kept.received_rows.narrow(0, bench_.placement.expert_place * tokens, tokens);
  }
  return kept;
}

void Bindings::clear_gradients(const plan::Operation& operation) const {
  for (int b : operation.takes) {
    const plan::Buffer& buffer = plan_.buffers[b];
    if (buffer.kind != plan::BufferKind::gradients) continue;
    auto* values = reinterpret_cast<float*>(bench_.pool + buffer.offset);
    if (operation.row > 0) std::fill_n(values, bench_.placement.buckets[buffer.bucket].elements, 0.0f);
    for (const Gap& gap : gaps_[buffer.bucket]) std::fill_n(values + gap.first, gap.count, 0.0f);
  }
}

}  // namespace ganymede::worker
