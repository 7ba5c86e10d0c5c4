#include "common/plan/gradients.h"

#include <utility>

namespace ganymede::plan {

Gradients::Gradients(Builder& builder) : builder_(builder), live_(builder.placement.buckets.size()) {}

void Gradients::write(Operation& operation, int layer) {
  for (int b : builder_.buckets_of(layer)) {
    const placement::Bucket& bucket = builder_.placement.buckets[b];
    if (!works_on(operation.part, bucket)) continue;
    bool first = live_[b].written < 0;
    live_[b].written = builder_.next();
    if (in_place(bucket)) continue;
    if (first) {
      live_[b].buffer =
          builder_.new_buffer(BufferKind::gradients, "gradients " + bucket.name, bucket.elements * 4, b, layer, -1);
      operation.takes.push_back(live_[b].buffer);
    } else {
      operation.uses.push_back(live_[b].buffer);
    }
  }
}

/// Memory for the sum of a micro-batch that is not the first.
void Gradients::take_sum(Operation& operation, std::int64_t elements) {
  const std::string& name = builder_.placement.buckets[operation.bucket].name;
  live_[operation.bucket].sum =
      builder_.new_buffer(BufferKind::sum, "sum " + name, elements * 4, operation.bucket, operation.layer, -1);
  operation.takes.push_back(live_[operation.bucket].sum);
}

/// Each replica sums its slice of the range, and the sums go back to all that hold it.
int Gradients::replica_reduce(int b, int layer, bool into_buffer) {
  const placement::Placement& placement = builder_.placement;
  const placement::Bucket& bucket = placement.buckets[b];
  std::int64_t own = bucket.slice[placement.replica + 1] - bucket.slice[placement.replica];
  Operation operation{.kind = OperationKind::replica_reduce, .lane = Lane::reduce, .bucket = b, .layer = layer};
  operation.wire = "fp32";
  operation.bytes = replica_traffic(builder_.config, placement, bucket).all();
  int exchange =
      builder_.new_buffer(BufferKind::exchange, "replicas " + bucket.name, own * placement.replicas * 4, b, layer, -1);
  operation.takes.push_back(exchange);
  builder_.give_back_later(exchange);
  if (placement.sharded_state) operation.uses.push_back(live_[b].buffer);
  if (into_buffer) take_sum(operation, own);
  return builder_.add(std::move(operation));
}

/// The sum over the bucket's ranks. When replicas hold slices, it stays in the gradients' buffer for their sum.
int Gradients::reduce_shards(int b, int layer, bool into_buffer) {
  const placement::Bucket& bucket = builder_.placement.buckets[b];
  Operation operation{.kind = OperationKind::reduce, .lane = Lane::reduce, .bucket = b, .layer = layer};
  operation.after.push_back(live_[b].written);
  if (bucket.group.size() > 1) {
    config::GradientWire format = gradient_wire(builder_.config, bucket.kind);
    operation.wire = name(format);
    operation.bytes = reduce_traffic(builder_.config, builder_.placement, bucket, builder_.choices).all();
    if (format == config::GradientWire::bf16_all_to_all) {
      int rounded = builder_.new_buffer(BufferKind::exchange, "bf16 " + bucket.name, bucket.elements * 2, b, layer, -1);
      operation.takes.push_back(rounded);
      builder_.give_back_later(rounded);
    }
  }
  if (!in_place(bucket)) {
    operation.uses.push_back(live_[b].buffer);
    builder_.give_back_later(live_[b].buffer);
  }
  if (into_buffer) take_sum(operation, bucket.range_elements());
  return builder_.add(std::move(operation));
}

int Gradients::accumulate(int b, int layer) {
  Operation operation{.kind = OperationKind::accumulate, .lane = Lane::reduce, .bucket = b, .layer = layer};
  operation.bytes = builder_.placement.buckets[b].shard_elements() * 4;
  operation.uses.push_back(live_[b].sum);
  builder_.give_back_later(live_[b].sum);
  return builder_.add(std::move(operation));
}

/// What this rank holds of the sum lies in its segment: of the first micro-batch at once, of the others it is added.
/// With slices of replicas that is their sum; else they sum what was added up, once a step.
int Gradients::reduce_bucket(int b, int layer, bool last) {
  const placement::Placement& placement = builder_.placement;
  if (in_place(placement.buckets[b]) && !last) return -1;  // rows are added up in place
  bool add = live_[b].sums++ > 0, slices = placement.sharded_state;
  int done = reduce_shards(b, layer, add && !slices);
  if (slices) done = replica_reduce(b, layer, add);
  if (add) done = accumulate(b, layer);
  if (placement.replicas > 1 && !slices && last) done = replica_reduce(b, layer, false);
  return done;
}

void Gradients::count_in_norm(int b, int layer, int reduced) {
  Operation norm{.kind = OperationKind::accumulate_norm, .lane = Lane::host, .bucket = b, .layer = layer};
  norm.after.push_back(reduced);
  norms_.push_back(builder_.add(std::move(norm)));
}

void Gradients::reduce(int layer, bool last) {
  if (!last && !builder_.choices.reduce_each) return;
  for (int b : builder_.buckets_of(layer)) {
    int reduced = reduce_bucket(b, layer, last);
    live_[b] = {.sums = live_[b].sums};
    if (!last) continue;
    Operation store{.kind = OperationKind::store_gradients, .lane = Lane::host, .bucket = b, .layer = layer};
    store.after.push_back(reduced);
    builder_.add(std::move(store));
    if (builder_.config.norm_in_backward) {
      count_in_norm(b, layer, reduced);
    } else {
      uncounted_.push_back({b, layer, reduced});
    }
  }
}

std::vector<int> Gradients::end() {
  std::vector<Sum> sums = std::exchange(uncounted_, {});
  for (const Sum& sum : sums) count_in_norm(sum.bucket, sum.layer, sums.back().reduced);
  return norms_;
}

}  // namespace ganymede::plan
