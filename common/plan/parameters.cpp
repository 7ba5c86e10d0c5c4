#include "common/plan/parameters.h"

#include <utility>

#include "common/base/error.h"

namespace ganymede::plan {

Parameters::Parameters(Builder& builder, PlanKind kind, int gathers_wait_for)
    : builder_(builder), kind_(kind), wait_for_(gathers_wait_for), live_(builder.placement.buckets.size()) {
  for (const placement::Bucket& bucket : builder.placement.buckets) {
    forms_.emplace_back(bucket, builder.placement.parameters, wire::wire_of(builder.config, bucket.kind));
  }
}

void Parameters::read(Operation& operation, int layer) const {
  for (int b : builder_.buckets_of(layer)) {
    if (!works_on(operation.part, builder_.placement.buckets[b])) continue;
    GANYMEDE_CHECK(live_[b].gathered >= 0, "plan: {} is read before its gather", builder_.placement.buckets[b].name);
    operation.after.push_back(live_[b].gathered);
    if (live_[b].buffer >= 0) operation.uses.push_back(live_[b].buffer);
  }
}

void Parameters::gather(int layer) {
  for (int b : builder_.buckets_of(layer)) {
    if (live_[b].gathered < 0) gather_bucket(b, layer);
  }
}

void Parameters::gather_bucket(int b, int layer) {
  ++live_[b].gathers;
  if (live_[b].share >= 0) return gather_in_node(b, layer);
  gather_from_owners(b, layer);
  const placement::Bucket& bucket = builder_.placement.buckets[b];
  bool again = kind_ == PlanKind::train && resharded_in_node(builder_.config, bucket, builder_.choices);
  if (again && !stays(b)) reshard(b, layer);
}

void Parameters::take_buffer(Operation& operation, int b) {
  const placement::Bucket& bucket = builder_.placement.buckets[b];
  std::int64_t element = builder_.config.compute.dtype == config::Dtype::bf16 ? 2 : 4;
  live_[b].buffer = builder_.new_buffer(BufferKind::parameters, "parameters " + bucket.name, bucket.elements * element,
                                        b, operation.layer, -1);
  operation.takes.push_back(live_[b].buffer);
}

/// A shared bucket crosses the wire, in fp8 into a buffer of its own; an fp8 bucket is decoded wherever it lies.
void Parameters::gather_from_owners(int b, int layer) {
  const placement::Bucket& bucket = builder_.placement.buckets[b];
  const wire::BucketForm& form = forms_[static_cast<std::size_t>(b)];
  bool shared = !in_place(bucket), encoded = form.wire() == config::ParameterWire::fp8;
  Operation operation{
      .kind = OperationKind::gather, .lane = ahead() ? Lane::gather : Lane::compute, .bucket = b, .layer = layer};
  if (wait_for_ >= 0) operation.after.push_back(wait_for_);
  if (shared || encoded) take_buffer(operation, b);
  if (shared) {
    operation.wire = wire::name(form.wire());
    operation.bytes = gather_traffic(builder_.config, builder_.placement, bucket, builder_.choices).all();
  }
  if (shared && encoded) {
    int exchange = builder_.new_buffer(BufferKind::exchange, "encoded " + bucket.name, form.bytes(), b, layer, -1);
    operation.takes.push_back(exchange);
    builder_.give_back_later(exchange);
  }
  live_[b].gathered = builder_.add(std::move(operation));
}

/// Right behind the gather, on its lane: the copy runs beside the layer's forward.
void Parameters::reshard(int b, int layer) {
  const placement::Bucket& bucket = builder_.placement.buckets[b];
  std::int64_t whole = forms_[static_cast<std::size_t>(b)].bytes();
  auto bytes = static_cast<std::int64_t>(node_share(builder_.config, builder_.placement, bucket, whole).bytes());
  Operation operation{.kind = OperationKind::reshard,
                      .lane = ahead() ? Lane::gather : Lane::compute,
                      .bucket = b,
                      .layer = layer,
                      .bytes = bytes};
  operation.uses.push_back(live_[b].buffer);
  live_[b].share = builder_.new_buffer(BufferKind::node_share, "share of " + bucket.name, bytes, b, layer, -1);
  operation.takes.push_back(live_[b].share);
  builder_.add(std::move(operation));
}

void Parameters::gather_in_node(int b, int layer) {
  const placement::Bucket& bucket = builder_.placement.buckets[b];
  Operation operation{
      .kind = OperationKind::regather, .lane = ahead() ? Lane::gather : Lane::compute, .bucket = b, .layer = layer};
  operation.wire = wire::name(forms_[static_cast<std::size_t>(b)].wire());
  operation.bytes = regather_in_node_traffic(builder_.config, builder_.placement, bucket, builder_.choices).all();
  operation.uses.push_back(live_[b].share);
  take_buffer(operation, b);
  live_[b].gathered = builder_.add(std::move(operation));
  if (live_[b].gathers == gathers_of(builder_.config, bucket, builder_.choices).all()) {
    builder_.give_back_later(std::exchange(live_[b].share, -1));
  }
}

/// Whether a bucket is kept to the end of the plan: by choice, or because all of the node's share is this rank's.
bool Parameters::stays(int b) const {
  const placement::Bucket& bucket = builder_.placement.buckets[b];
  if (builder_.config.keep_gathered) return true;
  if (kind_ != PlanKind::train || !resharded_in_node(builder_.config, bucket, builder_.choices)) return false;
  return node_share(builder_.config, builder_.placement, bucket, 0).members.size() == 1;
}

void Parameters::release(int layer) {
  if (builder_.config.early_release) return release_now(layer, false);
  done_.push_back(layer);
  builder_.release(layer);
}

void Parameters::release_now(int layer, bool all) {
  for (int b : builder_.buckets_of(layer)) {
    if (live_[b].buffer < 0 || (!all && stays(b))) continue;
    live_[b].gathered = -1;
    builder_.release(layer, b, {std::exchange(live_[b].buffer, -1)});
  }
  builder_.release(layer);  // where none of the layer's buckets had a buffer
}

void Parameters::end_of_pass() {
  for (int layer : std::exchange(done_, {})) release_now(layer, false);
}

void Parameters::end_of_plan() {
  end_of_pass();
  for (int layer = -1; layer <= builder_.layers; ++layer) release_now(layer, true);
}

}  // namespace ganymede::plan
