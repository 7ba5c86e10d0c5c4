#include "common/plan/traffic.h"

#include <algorithm>

#include "common/base/error.h"
#include "common/collectives/traffic_forms.h"
#include "common/plan/exchange_form.h"
#include "common/plan/plan.h"
#include "common/wire/bucket_form.h"

namespace ganymede::plan {
namespace {

using model_spec::BucketKind;

/// Where the members of a bucket's group live, seen from this rank.
collectives::NodeMap map_of(const config::Config& config, const placement::Bucket& bucket) {
  std::vector<int> nodes;
  for (int rank : bucket.group) nodes.push_back(node_of(config, rank));
  return {nodes, static_cast<int>(bucket.group.size()), bucket.index_in_group};
}

Moved moved(const collectives::SentBytes& sent) {
  return {static_cast<std::int64_t>(sent.inside_node), static_cast<std::int64_t>(sent.between_nodes)};
}

config::ParameterWire gather_wire(const placement::Bucket& bucket, const TrafficChoices& choices) {
  return bucket.kind == BucketKind::experts ? choices.expert_gather : choices.dense_gather;
}

GradientExchange gradient_exchange(const placement::Bucket& bucket, const TrafficChoices& choices) {
  return bucket.kind == BucketKind::experts ? choices.expert_gradients : choices.dense_gradients;
}

void add(std::vector<TrafficLine>& lines, BucketKind kind, const std::string& operation, const std::string& wire,
         const Moved& moved) {
  for (TrafficLine& line : lines) {
    if (line.kind == kind && line.operation == operation) {
      line.moved += moved;
      return;
    }
  }
  lines.push_back({kind, operation, wire, moved});
}

}  // namespace

config::GradientWire gradient_wire(const config::Config& config, model_spec::BucketKind kind) {
  return kind == BucketKind::experts ? config.wire.expert_gradients : config.wire.dense_gradients;
}

TrafficChoices choices_of(const config::Config& config) {
  TrafficChoices choices;
  choices.dense_gather = config.wire.dense_gather;
  choices.expert_gather = config.wire.expert_gather;
  choices.dense_gradients = config.wire.dense_gradients;
  choices.expert_gradients = config.wire.expert_gradients;
  choices.dense_reshard = config.dense.reshard;
  choices.reuse_embedding = config.reuse_embedding;
  choices.keep_gathered = config.keep_gathered;
  choices.reduce_each = config.micro_batch.reduce == config::MicroBatchReduce::each;
  choices.micro_batches = micro_batches(config, config.data.rows_per_step / config.parallel.ranks);
  return choices;
}

int node_of(const config::Config& config, int rank) {
  return config.topology.ranks_per_node == 0 ? 0 : rank / config.topology.ranks_per_node;
}

int node_ranks(const config::Config& config, int rank) {
  int per_node = config.topology.ranks_per_node, ranks = config.parallel.ranks;
  return per_node == 0 ? ranks : std::min(per_node, ranks - node_of(config, rank) * per_node);
}

namespace {

/// What comes first where replicas hold slices of a range: this rank's goes to all others.
Moved pass_on_traffic(const config::Config& config, const placement::Placement& placement,
                      const wire::BucketForm& form) {
  Moved moved;
  if (!placement.sharded_state) return moved;
  for (int rank : placement.replica_ranks) {
    bool here = node_of(config, rank) == node_of(config, placement.rank);
    if (rank != placement.rank) (here ? moved.inside : moved.between) += form.shard_bytes();
  }
  return moved;
}

}  // namespace

Moved gather_traffic(const config::Config& config, const placement::Placement& placement,
                     const placement::Bucket& bucket, const TrafficChoices& choices) {
  if (in_place(bucket)) return {};
  wire::BucketForm form(bucket, placement.parameters, gather_wire(bucket, choices));
  Moved all = pass_on_traffic(config, placement, form);
  all += moved(collectives::all_gather_bytes(map_of(config, bucket), form.cut()));
  return all;
}

Moved regather_in_node_traffic(const config::Config& config, const placement::Placement& placement,
                               const placement::Bucket& bucket, const TrafficChoices& choices) {
  wire::BucketForm form(bucket, placement.parameters, gather_wire(bucket, choices));
  NodeShare share = node_share(config, placement, bucket, form.bytes());
  auto others = static_cast<std::int64_t>(share.members.size()) - 1;
  return {static_cast<std::int64_t>(share.bytes()) * others, 0};
}

Moved reduce_traffic(const config::Config& config, const placement::Placement&, const placement::Bucket& bucket,
                     const TrafficChoices& choices) {
  if (in_place(bucket)) return {};
  collectives::NodeMap map = map_of(config, bucket);
  GradientExchange exchange = gradient_exchange(bucket, choices);
  if (exchange == GradientExchange::fp32_reduce_scatter)
    return moved(collectives::reduce_scatter_bytes(map, bucket.cut));
  std::size_t element = exchange == GradientExchange::bf16_all_to_all ? 2 : 4;
  return moved(collectives::all_to_all_sum_bytes(map, bucket.cut, element));
}

Moved replica_traffic(const config::Config& config, const placement::Placement& placement,
                      const placement::Bucket& bucket) {
  auto slice = [&](int replica) { return (bucket.slice[replica + 1] - bucket.slice[replica]) * 4; };
  Moved moved;
  for (int replica = 0; replica < placement.replicas; ++replica) {
    if (replica == placement.replica) continue;
    // A part of its slice goes to each; the sum of the own slice comes back to each that holds it.
    std::int64_t bytes = slice(replica) + (placement.sharded_state ? 0 : slice(placement.replica));
    bool here = node_of(config, placement.replica_ranks[replica]) == node_of(config, placement.rank);
    (here ? moved.inside : moved.between) += bytes;
  }
  return moved;
}

namespace {

Moved all_to_all_traffic(const config::Config& config, const placement::Bucket& bucket,
                         const std::vector<std::int64_t>& offsets) {
  std::vector<std::size_t> bytes;
  for (std::size_t i = 1; i < offsets.size(); ++i)
    bytes.push_back(static_cast<std::size_t>(offsets[i] - offsets[i - 1]) * sizeof(float));
  return moved(collectives::all_to_all_bytes(map_of(config, bucket), bytes));
}

}  // namespace

UpdateTraffic update_traffic(const config::Config& config, const placement::Bucket& bucket,
                             const placement::BucketMatrices& matrices) {
  if (!matrices.travels()) return {};
  return {all_to_all_traffic(config, bucket, matrices.sent), all_to_all_traffic(config, bucket, matrices.received)};
}

namespace {

/// Tokens of all rows and layers, where their number is known.
void add_exchange(const config::Config& config, const placement::Placement& placement,
                  std::vector<TrafficLine>& lines) {
  ExchangeForm form = exchange_form(config);
  if (!form.even) return;
  ExchangeBytes bytes = exchange_bytes(config, placement.expert_place);
  std::int64_t times = std::int64_t{placement::rows_of(config, placement.rank).count} *
                       std::max(0, config.model.layers - config.model.dense_layers);
  const char* wire = form.element == 2 ? "bf16" : "fp32";
  add(lines, BucketKind::experts, "dispatch", wire, {times * (bytes.dispatch_forward + bytes.dispatch_backward), 0});
  add(lines, BucketKind::experts, "combine", wire, {times * (bytes.combine_forward + bytes.combine_backward), 0});
}

}  // namespace

std::vector<TrafficLine> step_traffic(const config::Config& config, const placement::Placement& placement,
                                      const TrafficChoices& choices) {
  std::vector<TrafficLine> lines;
  std::int64_t sums = choices.reduce_each ? choices.micro_batches : 1;
  for (const placement::Bucket& bucket : placement.buckets) {
    const char* wire = wire::name(gather_wire(bucket, choices));
    GatherCount count = gathers_of(config, bucket, choices);
    Moved first = gather_traffic(config, placement, bucket, choices);
    bool local = resharded_in_node(config, bucket, choices);
    Moved again = local ? regather_in_node_traffic(config, placement, bucket, choices) : first;
    add(lines, bucket.kind, "gather, forward", wire, first + (count.forward - 1) * again);
    add(lines, bucket.kind, "gather, backward", wire, count.backward * again);
    add(lines, bucket.kind, "reduce", name(gradient_exchange(bucket, choices)),
        sums * reduce_traffic(config, placement, bucket, choices));
    if (placement.replicas == 1) continue;
    std::int64_t times = placement.sharded_state && !in_place(bucket) ? sums : 1;
    add(lines, bucket.kind, "replica_reduce", "fp32", times * replica_traffic(config, placement, bucket));
  }
  add_exchange(config, placement, lines);
  std::vector<placement::BucketMatrices> matrices = placement::matrices_of(placement);
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    if (!matrices[i].travels()) continue;
    UpdateTraffic traffic = update_traffic(config, placement.buckets[i], matrices[i]);
    add(lines, placement.buckets[i].kind, "update_send", "fp32", traffic.send);
    add(lines, placement.buckets[i].kind, "update_return", "fp32", traffic.bring_back);
  }
  return lines;
}

Moved total(const std::vector<TrafficLine>& lines, const std::string& operation) {
  Moved sum;
  for (const TrafficLine& line : lines) {
    if (line.operation == operation) sum += line.moved;
  }
  return sum;
}

const char* name(GradientExchange exchange) {
  constexpr const char* names[] = {"fp32_reduce_scatter", "fp32_all_to_all", "bf16_all_to_all"};
  return names[static_cast<std::size_t>(exchange)];
}

const char* name(model_spec::BucketKind kind) {
  constexpr const char* names[] = {"embed", "dense", "experts", "head"};
  return names[static_cast<std::size_t>(kind)];
}

}  // namespace ganymede::plan
