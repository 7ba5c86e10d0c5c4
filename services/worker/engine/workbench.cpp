#include "services/worker/engine/workbench.h"

namespace ganymede::worker {

int find_buffer(const plan::StepPlan& plan, const plan::Operation& operation, plan::BufferKind kind, int bucket,
                int layer) {
  for (const auto* list : {&operation.takes, &operation.uses, &operation.frees}) {
    for (int b : *list) {
      const plan::Buffer& buffer = plan.buffers[b];
      bool here = (bucket < 0 || buffer.bucket == bucket) && (layer < 0 || buffer.layer == layer);
      if (buffer.kind == kind && here) return b;
    }
  }
  return -1;
}

std::int64_t first_count(const model_spec::ModelSpec& spec, int layer) {
  std::int64_t before = 0;
  for (const model_spec::LayerSpec& one : spec.layers) {
    if (one.index == layer) return one.moe ? before : -1;
    before += one.moe ? spec.experts : 0;
  }
  return -1;
}

at::ScalarType scalar_type(config::Dtype dtype) { return dtype == config::Dtype::bf16 ? at::kBFloat16 : at::kFloat; }

}  // namespace ganymede::worker
