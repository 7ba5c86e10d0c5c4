#include "common/plan/builder.h"

#include <utility>

#include "common/base/error.h"

namespace ganymede::plan {

int Builder::add(Operation operation) {
  plan_.operations.push_back(std::move(operation));
  return static_cast<int>(plan_.operations.size()) - 1;
}

int Builder::new_buffer(BufferKind kind, const std::string& name, std::int64_t bytes, int bucket, int layer, int row) {
  std::int64_t rounded = (bytes + buffer_alignment - 1) / buffer_alignment * buffer_alignment;
  plan_.buffers.push_back({name, kind, rounded, 0, bucket, layer, row});
  return static_cast<int>(plan_.buffers.size()) - 1;
}

Builder::Builder(const config::Config& config, const placement::Placement& placement)
    : config(config),
      placement(placement),
      layers(config.model.layers),
      choices_(choices_of(config)),
      live_(placement.buckets.size()),
      buckets_(static_cast<std::size_t>(layers) + 2) {
  for (std::size_t i = 0; i < placement.buckets.size(); ++i) {
    const placement::Bucket& bucket = placement.buckets[i];
    int layer = bucket.kind == model_spec::BucketKind::embed  ? -1
                : bucket.kind == model_spec::BucketKind::head ? layers
                                                              : bucket.layer;
    buckets_[static_cast<std::size_t>(layer) + 1].push_back(static_cast<int>(i));
    forms_.emplace_back(bucket, placement.parameters, wire::wire_of(config, bucket.kind));
  }
}

const std::vector<int>& Builder::buckets_of(int layer) const { return buckets_[static_cast<std::size_t>(layer) + 1]; }

void Builder::read_parameters(Operation& operation, int layer) {
  for (int b : buckets_of(layer)) {
    GANYMEDE_CHECK(live_[b].gathered >= 0, "plan: {} is read before its gather", placement.buckets[b].name);
    operation.after.push_back(live_[b].gathered);
    if (live_[b].parameters >= 0) operation.uses.push_back(live_[b].parameters);
  }
}

void Builder::write_gradients(Operation& operation, int layer) {
  int index = static_cast<int>(plan_.operations.size());
  for (int b : buckets_of(layer)) {
    Live& bucket = live_[b];
    bool first = bucket.written < 0;
    bucket.written = index;
    if (in_place(placement.buckets[b])) continue;
    if (first) {
      bucket.gradients = new_buffer(BufferKind::gradients, "gradients " + placement.buckets[b].name,
                                    placement.buckets[b].elements * 4, b, layer, -1);
      operation.takes.push_back(bucket.gradients);
    } else {
      operation.uses.push_back(bucket.gradients);
    }
  }
}

void Builder::gather(int layer) {
  for (int b : buckets_of(layer)) gather_bucket(b, layer);
}

/// A shared bucket crosses the wire, in fp8 into a buffer of its own; an fp8 bucket is decoded wherever it lies.
void Builder::gather_bucket(int b, int layer) {
  const placement::Bucket& bucket = placement.buckets[b];
  const wire::BucketForm& form = forms_[static_cast<std::size_t>(b)];
  bool shared = !in_place(bucket), encoded = form.wire() == config::ParameterWire::fp8;
  if (!shared && !encoded && live_[b].gathered >= 0) return;  // still where it was
  Operation operation{.kind = OperationKind::gather, .lane = Lane::gather, .bucket = b, .layer = layer};
  live_[b].parameters = -1;
  if (shared || encoded) {
    std::int64_t element = config.compute.dtype == config::Dtype::bf16 ? 2 : 4;
    live_[b].parameters =
        new_buffer(BufferKind::parameters, "parameters " + bucket.name, bucket.elements * element, b, layer, -1);
    operation.takes.push_back(live_[b].parameters);
  }
  if (shared) {
    operation.wire = wire::name(form.wire());
    operation.bytes = gather_traffic(config, placement, bucket, choices_).all();
  }
  if (shared && encoded) {
    int exchange = new_buffer(BufferKind::exchange, "encoded " + bucket.name, form.bytes(), b, layer, -1);
    operation.takes.push_back(exchange);
    give_back_later(exchange);
  }
  live_[b].gathered = add(std::move(operation));
}

void Builder::release(int layer) {
  for (int b : buckets_of(layer)) {
    if (live_[b].parameters < 0) continue;
    Operation operation{.kind = OperationKind::release, .lane = Lane::compute, .bucket = b, .layer = layer};
    operation.frees.push_back(live_[b].parameters);
    live_[b] = {-1, -1, live_[b].gradients, live_[b].written};
    operation.frees.insert(operation.frees.end(), spent_.begin(), spent_.end());
    spent_.clear();
    add(std::move(operation));
  }
  if (spent_.empty()) return;  // else none of the layer's buckets had a buffer
  Operation operation{.kind = OperationKind::release, .lane = Lane::compute, .layer = layer};
  operation.frees.swap(spent_);
  add(std::move(operation));
}

/// Each replica sums its slice of the range, and the sums go back to all that hold it.
int Builder::replica_reduce(int b, int layer) {
  const placement::Bucket& bucket = placement.buckets[b];
  std::int64_t own = bucket.slice[placement.replica + 1] - bucket.slice[placement.replica];
  Operation operation{.kind = OperationKind::replica_reduce, .lane = Lane::reduce, .bucket = b, .layer = layer};
  operation.wire = "fp32";
  operation.bytes = replica_traffic(config, placement, bucket).all();
  int exchange =
      new_buffer(BufferKind::exchange, "replicas " + bucket.name, own * placement.replicas * 4, b, layer, -1);
  operation.takes.push_back(exchange);
  give_back_later(exchange);
  if (placement.sharded_state) operation.uses.push_back(live_[b].gradients);
  return add(std::move(operation));
}

/// The sum over the bucket's ranks. When replicas hold slices, it stays in the gradients' buffer for their sum.
int Builder::reduce_bucket(int b, int layer) {
  const placement::Bucket& bucket = placement.buckets[b];
  Operation operation{.kind = OperationKind::reduce, .lane = Lane::reduce, .bucket = b, .layer = layer};
  operation.after.push_back(live_[b].written);
  if (bucket.group.size() > 1) {
    config::GradientWire format = gradient_wire(config, bucket.kind);
    operation.wire = name(format);
    operation.bytes = reduce_traffic(config, placement, bucket, choices_).all();
    if (format == config::GradientWire::bf16_all_to_all) {
      int rounded = new_buffer(BufferKind::exchange, "bf16 " + bucket.name, bucket.elements * 2, b, layer, -1);
      operation.takes.push_back(rounded);
      give_back_later(rounded);
    }
  }
  if (!in_place(bucket)) {
    operation.uses.push_back(live_[b].gradients);
    give_back_later(live_[b].gradients);
  }
  int reduced = add(std::move(operation));
  return placement.replicas > 1 ? replica_reduce(b, layer) : reduced;
}

void Builder::reduce(int layer) {
  for (int b : buckets_of(layer)) {
    int reduced = reduce_bucket(b, layer);
    Operation store{.kind = OperationKind::store_gradients, .lane = Lane::host, .bucket = b, .layer = layer};
    store.after.push_back(reduced);
    add(std::move(store));
    Operation norm{.kind = OperationKind::accumulate_norm, .lane = Lane::host, .bucket = b, .layer = layer};
    norm.after.push_back(reduced);
    norms.push_back(add(std::move(norm)));
  }
}

StepPlan Builder::finish() {
  GANYMEDE_CHECK(spent_.empty(), "plan: {} buffers of transfers are never given back", spent_.size());
  complete_dependencies(plan_);
  lay_out_buffers(plan_);
  return std::move(plan_);
}

}  // namespace ganymede::plan
