#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/config/config.h"
#include "common/placement/matrices.h"
#include "common/placement/placement.h"

/// The closed form of what a rank sends in one step, inside its node and between nodes: from the placement alone, by
/// which the counters of a run are held. Gathers, and reductions by reduce_scatter, cross once for each node. GB are
/// 1e9 bytes.
namespace ganymede::plan {

/// How gradients of a bucket become the sum that its owner holds.
using GradientExchange = config::GradientWire;

/// From whom a dense bucket that was gathered once in a step is gathered again.
using Reshard = config::Reshard;

/// Everything that decides about bytes.
struct TrafficChoices {
  config::ParameterWire dense_gather = config::ParameterWire::fp32;
  config::ParameterWire expert_gather = config::ParameterWire::fp32;
  GradientExchange dense_gradients = GradientExchange::fp32_all_to_all;
  GradientExchange expert_gradients = GradientExchange::fp32_all_to_all;
  Reshard dense_reshard = Reshard::world;
  bool reuse_embedding = true;  // the embedding is not gathered again for backward
  bool keep_last = true;        // nor are the last layer and the head, whose backward follows their forward (and, with
                                // micro-batches, the first layer, whose forward follows its backward)
  bool keep_gathered = false;   // nothing is gathered again
  int micro_batches = 1;        // passes through the model in a step
  bool reduce_each = false;     // gradients of each of them are summed over ranks; else those of the step
};

/// How gradients of a kind of bucket are summed.
config::GradientWire gradient_wire(const config::Config& config, model_spec::BucketKind kind);

/// Those of a configuration.
TrafficChoices choices_of(const config::Config& config);

/// Rows of a rank that one gather serves, at most; `rows`: the rank has in all.
int micro_batch_rows(const config::Config& config, int rows);
/// Passes that so many rows take.
int micro_batches(const config::Config& config, int rows);

/// How often a training step gathers a bucket.
struct GatherCount {
  int forward = 0, backward = 0;
  int all() const { return forward + backward; }
};
GatherCount gathers_of(const config::Config& config, const placement::Bucket& bucket, const TrafficChoices& choices);

/// Whether all gathers of a bucket but the first of a step are made from what each node has of it
/// (dense.reshard = node): where nodes could spare one another something.
bool resharded_in_node(const config::Config& config, const placement::Bucket& bucket, const TrafficChoices& choices);

/// What a rank keeps of such a bucket.
struct NodeShare {
  std::vector<int> members;      // world ranks of this node that share the bucket, ascending
  std::vector<std::size_t> cut;  // members + 1 boundaries in the bucket's bytes
  int place = 0;                 // this rank's among the members
  std::size_t begin() const { return cut[static_cast<std::size_t>(place)]; }
  std::size_t bytes() const { return cut[static_cast<std::size_t>(place) + 1] - begin(); }
};
/// `bytes` of the whole bucket as it is gathered.
NodeShare node_share(const config::Config& config, const placement::Placement& placement,
                     const placement::Bucket& bucket, std::int64_t bytes);

/// Bytes that a rank sends.
struct Moved {
  std::int64_t inside = 0;   // to ranks of its node: what they read of its memory
  std::int64_t between = 0;  // to ranks of other nodes
  std::int64_t all() const { return inside + between; }
  Moved& operator+=(const Moved& other) {
    inside += other.inside;
    between += other.between;
    return *this;
  }
  friend Moved operator+(Moved a, const Moved& b) { return a += b; }
  friend Moved operator*(std::int64_t times, const Moved& one) { return {times * one.inside, times * one.between}; }
};

/// Node of a rank: rank / topology.ranks_per_node; 0 when that key is 0.
int node_of(const config::Config& config, int rank);
/// Ranks of this rank's node.
int node_ranks(const config::Config& config, int rank);

/// One gather of a bucket over its group.
Moved gather_traffic(const config::Config& config, const placement::Placement& placement,
                     const placement::Bucket& bucket, const TrafficChoices& choices);
/// One gather of a bucket from what the ranks of the node keep of it, an even share each.
Moved regather_in_node_traffic(const config::Config& config, const placement::Placement& placement,
                               const placement::Bucket& bucket, const TrafficChoices& choices);
/// One reduction of a bucket's gradients.
Moved reduce_traffic(const config::Config& config, const placement::Placement& placement,
                     const placement::Bucket& bucket, const TrafficChoices& choices);

/// One sum of a bucket's shard over the replicas: each sums a slice of it and gives the sums back.
Moved replica_traffic(const config::Config& config, const placement::Placement& placement,
                      const placement::Bucket& bucket);

/// What a rank sends of the rows of a bucket's matrices to who orthogonalises them, and back.
struct UpdateTraffic {
  Moved send, bring_back;
};
UpdateTraffic update_traffic(const config::Config& config, const placement::Bucket& bucket,
                             const placement::BucketMatrices& matrices);

/// One line of the table: all buckets of a kind together.
struct TrafficLine {
  model_spec::BucketKind kind{};
  std::string operation;  // "gather, forward", "gather, backward", "reduce", "replica_reduce", "dispatch", "combine",
                          // "update_send", "update_return"
  std::string wire;       // "bf16", "fp8", "fp32_all_to_all"
  Moved moved;
};
/// Of one training step, without the vote; and without the exchange of tokens where the router decides how many travel
/// (ExchangeForm::even is false).
std::vector<TrafficLine> step_traffic(const config::Config& config, const placement::Placement& placement,
                                      const TrafficChoices& choices);
/// The sum of the lines of an operation.
Moved total(const std::vector<TrafficLine>& lines, const std::string& operation);

const char* name(GradientExchange exchange);
const char* name(model_spec::BucketKind kind);

}  // namespace ganymede::plan
