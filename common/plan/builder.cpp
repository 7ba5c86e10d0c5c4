#include "common/plan/builder.h"

#include <utility>

#include "common/base/error.h"

namespace ganymede::plan {

Builder::Builder(const config::Config& config, const placement::Placement& placement)
    : config(config),
      placement(placement),
      layers(config.model.layers),
      choices(choices_of(config)),
      buckets_(static_cast<std::size_t>(layers) + 2) {
  for (std::size_t i = 0; i < placement.buckets.size(); ++i) {
    const placement::Bucket& bucket = placement.buckets[i];
    int layer = bucket.kind == model_spec::BucketKind::embed  ? -1
                : bucket.kind == model_spec::BucketKind::head ? layers
                                                              : bucket.layer;
    buckets_[static_cast<std::size_t>(layer) + 1].push_back(static_cast<int>(i));
  }
}

bool works_on(Part part, const placement::Bucket& bucket) {
  return part == Part::whole || (part == Part::experts) == (bucket.kind == model_spec::BucketKind::experts);
}

int Builder::add(Operation operation) {
  plan_.operations.push_back(std::move(operation));
  return next() - 1;
}

int Builder::new_buffer(BufferKind kind, const std::string& name, std::int64_t bytes, int bucket, int layer, int row,
                        Travel travel) {
  std::int64_t rounded = (bytes + buffer_alignment - 1) / buffer_alignment * buffer_alignment;
  plan_.buffers.push_back({name, kind, rounded, 0, bucket, layer, row, travel});
  return static_cast<int>(plan_.buffers.size()) - 1;
}

const std::vector<int>& Builder::buckets_of(int layer) const { return buckets_[static_cast<std::size_t>(layer) + 1]; }

void Builder::release(int layer, int bucket, std::vector<int> buffers) {
  buffers.insert(buffers.end(), spent_.begin(), spent_.end());
  spent_.clear();
  if (buffers.empty()) return;
  Operation operation{.kind = OperationKind::release, .lane = Lane::compute, .bucket = bucket, .layer = layer};
  operation.frees = std::move(buffers);
  add(std::move(operation));
}

StepPlan Builder::finish() {
  GANYMEDE_CHECK(spent_.empty(), "plan: {} buffers of transfers are never given back", spent_.size());
  complete_dependencies(plan_);
  lay_out_buffers(plan_, !config.reduce_into_compute_pool);
  plan_.rotary_bytes = rotary_bytes(config);
  return std::move(plan_);
}

}  // namespace ganymede::plan
