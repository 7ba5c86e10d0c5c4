#include "services/worker/engine/transfer_operations.h"

#include <algorithm>
#include <cstring>

#include "common/base/error.h"
#include "common/plan/traffic.h"
#include "common/wire/bf16.h"

namespace ganymede::worker {
namespace {

collectives::Cargo cargo(const placement::Bucket& bucket, const char* wire) { return {plan::name(bucket.kind), wire}; }

}  // namespace

using plan::BufferKind;
using plan::Operation;
using plan::OperationKind;

void TransferOperations::install(OperationTable& table) {
  table[OperationKind::gather] = [this](const Operation& o, int) { gather(o); };
  table[OperationKind::reshard] = [this](const Operation& o, int) { reshard(o); };
  table[OperationKind::regather] = [this](const Operation& o, int) { regather(o); };
  table[OperationKind::reduce] = [this](const Operation& o, int) { reduce(o); };
  table[OperationKind::accumulate] = [this](const Operation& o, int) { accumulate(o); };
  table[OperationKind::replica_reduce] = [this](const Operation& o, int) { replica_reduce(o); };
  table[OperationKind::offload] = [this](const Operation& o, int) { copy_to_arena(o); };
  table[OperationKind::prefetch] = [this](const Operation& o, int) { copy_from_arena(o); };
}

std::byte* TransferOperations::place(int buffer) const {
  const plan::Buffer& b = plan_.buffers[buffer];
  return (b.kind == BufferKind::arena ? bench_.cell.arena.data() : bench_.pool) + b.offset;
}

void TransferOperations::gather(const Operation& operation) {
  const placement::Bucket& bucket = bench_.placement.buckets[operation.bucket];
  std::uint64_t wanted = bench_.pass.parameters_of;
  bench_.surroundings.wait(
      WaitKind::update, bench_.cell.control.working_copy_ready[operation.bucket],
      [wanted](std::uint64_t value) { return value == wanted; }, "the working copy of a bucket");
  const wire::BucketForm& form = bench_.cell.working_form.buckets[operation.bucket];
  bool encoded = form.wire() == config::ParameterWire::fp8;
  auto mine = bench_.cell.working.subspan(static_cast<std::size_t>(bench_.cell.working_form.offset[operation.bucket]),
                                          static_cast<std::size_t>(form.shard_bytes()));
  if (bench_.pass.hashes.wanted()) add(bench_.pass.hashes.parameters, operation.bucket, mine);
  const std::byte* whole = mine.data();
  if (!plan::in_place(bucket)) {
    BufferKind into = encoded ? BufferKind::exchange : BufferKind::parameters;
    std::byte* all = place(find_buffer(plan_, operation, into, operation.bucket, -1));
    whole = all;
    const std::vector<std::size_t>& cut = form.cut();
    if (bench_.placement.sharded_state) mine = gather_range(bucket, form, mine, all);
    if (bucket.group.size() > 1) {
      bench_.surroundings.wait(bench_.communicators.gather(bucket).all_gather(mine, {all, cut.back()}, cut,
                                                                              cargo(bucket, wire::name(form.wire()))));
    }
  }
  if (encoded) decode(operation, form, whole);
}

plan::NodeShare TransferOperations::share_of(const Operation& operation) const {
  auto bucket = static_cast<std::size_t>(operation.bucket);
  return plan::node_share(bench_.config, bench_.placement, bench_.placement.buckets[bucket],
                          bench_.cell.working_form.buckets[bucket].bytes());
}

void TransferOperations::reshard(const Operation& operation) {
  plan::NodeShare share = share_of(operation);
  const std::byte* whole = place(find_buffer(plan_, operation, BufferKind::parameters, operation.bucket, -1));
  std::byte* kept = place(find_buffer(plan_, operation, BufferKind::node_share, operation.bucket, -1));
  std::memcpy(kept, whole + share.begin(), share.bytes());
}

void TransferOperations::regather(const Operation& operation) {
  plan::NodeShare share = share_of(operation);
  const std::byte* kept = place(find_buffer(plan_, operation, BufferKind::node_share, operation.bucket, -1));
  std::byte* whole = place(find_buffer(plan_, operation, BufferKind::parameters, operation.bucket, -1));
  bench_.surroundings.wait(bench_.communicators.gather_in_node().all_gather(
      {kept, share.bytes()}, {whole, share.cut.back()}, share.cut,
      cargo(bench_.placement.buckets[operation.bucket], operation.wire.c_str())));
}

std::span<std::byte> TransferOperations::gather_range(const placement::Bucket& bucket, const wire::BucketForm& form,
                                                      std::span<const std::byte> slice, std::byte* whole) {
  std::vector<std::size_t> offsets;
  std::int64_t begin = form.byte_of(bucket.slice.front());
  for (std::int64_t at : bucket.slice) offsets.push_back(static_cast<std::size_t>(form.byte_of(at) - begin));
  std::span<std::byte> range{whole + begin, offsets.back()};
  bench_.surroundings.wait(
      bench_.communicators.replica_gather().all_gather(slice, range, offsets, cargo(bucket, wire::name(form.wire()))));
  return range;
}

void TransferOperations::decode(const Operation& operation, const wire::BucketForm& form, const std::byte* whole) {
  std::int64_t elements = bench_.placement.buckets[operation.bucket].elements;
  std::byte* flat = place(find_buffer(plan_, operation, BufferKind::parameters, operation.bucket, -1));
  if (bench_.config.compute.dtype == config::Dtype::bf16) {
    form.decode(0, elements, whole, reinterpret_cast<std::uint16_t*>(flat));
  } else {
    form.decode(0, elements, whole, reinterpret_cast<float*>(flat));
  }
}

void sum_in_order(std::span<const float> parts, std::span<float> sum) {
  constexpr std::size_t block = 4096;  // elements: the sums of a block stay in the first cache
  for (std::size_t begin = 0; begin < sum.size(); begin += block) {
    std::size_t count = std::min(block, sum.size() - begin);
    float* out = sum.data() + begin;
    std::memcpy(out, parts.data() + begin, count * sizeof(float));
    for (std::size_t part = sum.size(); part < parts.size(); part += sum.size()) {
      const float* in = parts.data() + part + begin;
      for (std::size_t i = 0; i < count; ++i) out[i] += in[i];
    }
  }
}

void TransferOperations::reduce(const Operation& operation) {
  const placement::Bucket& bucket = bench_.placement.buckets[operation.bucket];
  if (bucket.group.size() == 1) return;
  std::byte* whole = place(find_buffer(plan_, operation, BufferKind::gradients, operation.bucket, -1));
  std::span<const float> values{reinterpret_cast<const float*>(whole), static_cast<std::size_t>(bucket.elements)};
  if (bench_.pass.hashes.wanted()) add(bench_.pass.hashes.gradients, operation.bucket, std::as_bytes(values));
  std::span<float> sum = range_gradients(operation);
  collectives::Communicator& group = bench_.communicators.reduce(bucket);
  switch (plan::gradient_wire(bench_.config, bucket.kind)) {
    case config::GradientWire::fp32_reduce_scatter:
      return bench_.surroundings.wait(group.reduce_scatter(values, bucket.cut, sum, cargo(bucket, "fp32")));
    case config::GradientWire::fp32_all_to_all:
      return bench_.surroundings.wait(group.all_to_all_sum(std::as_bytes(values), collectives::Element::fp32,
                                                           bucket.cut, sum, cargo(bucket, "fp32")));
    case config::GradientWire::bf16_all_to_all: {
      auto* rounded = reinterpret_cast<std::uint16_t*>(
          place(find_buffer(plan_, operation, BufferKind::exchange, operation.bucket, -1)));
      wire::encode_bf16(values, rounded);
      std::span<const std::uint16_t> sent{rounded, values.size()};
      return bench_.surroundings.wait(group.all_to_all_sum(std::as_bytes(sent), collectives::Element::bf16, bucket.cut,
                                                           sum, cargo(bucket, "bf16")));
    }
  }
}

/// Where the sum over the shard group lies until it is that over all replicas: in the segment, or, when the segment has
/// room for a slice of it only, in the buffer of the bucket's gradients.
std::span<float> TransferOperations::range_gradients(const Operation& operation) {
  const placement::Bucket& bucket = bench_.placement.buckets[operation.bucket];
  auto elements = static_cast<std::size_t>(bucket.range_elements());
  if (!bench_.placement.sharded_state) return held_sum(operation, elements);
  std::byte* whole = place(find_buffer(plan_, operation, BufferKind::gradients, operation.bucket, -1));
  return {reinterpret_cast<float*>(whole) + bucket.range_begin(), elements};
}

void TransferOperations::replica_reduce(const Operation& operation) {
  const placement::Bucket& bucket = bench_.placement.buckets[operation.bucket];
  auto own = static_cast<std::size_t>(bench_.placement.replica);
  auto within = [&](std::size_t replica) { return static_cast<std::size_t>(bucket.slice[replica] - bucket.slice[0]); };
  std::size_t first = within(own), count = within(own + 1) - first;
  std::vector<std::size_t> slices, parts;
  for (std::size_t i = 0; i < bucket.slice.size(); ++i) {
    slices.push_back(within(i) * sizeof(float));
    parts.push_back(i * count * sizeof(float));
  }
  std::span<float> range = range_gradients(operation);
  bool own_alone = bench_.pass.hashes.wanted() && bucket.group.size() == 1;
  if (own_alone) add(bench_.pass.hashes.gradients, operation.bucket, std::as_bytes(range));
  std::byte* received = place(find_buffer(plan_, operation, BufferKind::exchange, operation.bucket, -1));
  collectives::Communicator& replicas = bench_.communicators.replica_reduce();
  bench_.surroundings.wait(
      replicas.all_to_all(std::as_bytes(range), slices, {received, parts.back()}, parts, cargo(bucket, "fp32")));
  bool sharded = bench_.placement.sharded_state;
  std::span<float> sum = sharded ? held_sum(operation, count) : range.subspan(first, count);
  sum_in_order({reinterpret_cast<const float*>(received), count * static_cast<std::size_t>(replicas.size())}, sum);
  if (sharded) return;
  bench_.surroundings.wait(
      replicas.all_gather(std::as_bytes(sum), std::as_writable_bytes(range), slices, cargo(bucket, "fp32")));
}

std::span<float> TransferOperations::held_sum(const Operation& operation, std::size_t elements) const {
  int buffer = find_buffer(plan_, operation, BufferKind::sum, operation.bucket, -1);
  if (buffer >= 0) return {reinterpret_cast<float*>(place(buffer)), elements};
  const placement::Bucket& bucket = bench_.placement.buckets[operation.bucket];
  return bench_.cell.gradients.subspan(static_cast<std::size_t>(bucket.shard_offset), elements);
}

void TransferOperations::accumulate(const Operation& operation) {
  const placement::Bucket& bucket = bench_.placement.buckets[operation.bucket];
  auto elements = static_cast<std::size_t>(bucket.shard_elements());
  std::span<const float> sum = held_sum(operation, elements);
  float* all = bench_.cell.gradients.data() + bucket.shard_offset;
  for (std::size_t i = 0; i < elements; ++i) all[i] += sum[i];
}

void TransferOperations::copy_to_arena(const Operation& operation) {
  int from = find_buffer(plan_, operation, BufferKind::saved_input, -1, operation.layer);
  int to = find_buffer(plan_, operation, BufferKind::arena, -1, operation.layer);
  std::memcpy(place(to), place(from), static_cast<std::size_t>(operation.bytes));
}

void TransferOperations::copy_from_arena(const Operation& operation) {
  int from = find_buffer(plan_, operation, BufferKind::arena, -1, operation.layer);
  int to = find_buffer(plan_, operation, BufferKind::saved_input, -1, operation.layer);
  std::memcpy(place(to), place(from), static_cast<std::size_t>(operation.bytes));
}

}  // namespace ganymede::worker
