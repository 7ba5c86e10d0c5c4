#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/config/config.h"
#include "common/placement/placement.h"

/// The closed form of what a rank sends in one step, inside its node and between nodes: from the placement alone, by
/// which the counters of a run are held. Gathers, and reductions by reduce_scatter, cross once for each node. GB are
/// 1e9 bytes.
namespace ganymede::plan {

/// How gradients of a bucket become the sum that its owner holds.
using GradientExchange = config::GradientWire;

/// Over which ranks a dense bucket is gathered again for backward.
enum class Reshard : std::uint8_t { world, node };

/// Everything that decides about bytes.
struct TrafficChoices {
  config::ParameterWire dense_gather = config::ParameterWire::fp32;
  config::ParameterWire expert_gather = config::ParameterWire::fp32;
  GradientExchange dense_gradients = GradientExchange::fp32_all_to_all;
  GradientExchange expert_gradients = GradientExchange::fp32_all_to_all;
  Reshard dense_reshard = Reshard::world;
  bool reuse_embedding = true;  // the embedding is not gathered again for backward
  bool keep_last = true;        // nor are the last layer and the head, whose backward follows their forward
};

/// How gradients of a kind of bucket are summed.
config::GradientWire gradient_wire(const config::Config& config, model_spec::BucketKind kind);

/// Those of a configuration.
TrafficChoices choices_of(const config::Config& config);

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
};

/// Node of a rank: rank / topology.ranks_per_node; 0 when that key is 0.
int node_of(const config::Config& config, int rank);
/// Ranks of this rank's node.
int node_ranks(const config::Config& config, int rank);

/// One gather of a bucket over its group.
Moved gather_traffic(const config::Config& config, const placement::Placement& placement,
                     const placement::Bucket& bucket, const TrafficChoices& choices);
/// One gather of a bucket of which the ranks of each node still hold the whole between them.
Moved regather_in_node_traffic(const config::Config& config, const placement::Placement& placement,
                               const placement::Bucket& bucket, const TrafficChoices& choices);
/// One reduction of a bucket's gradients.
Moved reduce_traffic(const config::Config& config, const placement::Placement& placement,
                     const placement::Bucket& bucket, const TrafficChoices& choices);

/// One sum of a bucket's shard over the replicas: each sums a slice of it and gives the sums back.
Moved replica_traffic(const config::Config& config, const placement::Placement& placement,
                      const placement::Bucket& bucket);

/// One line of the table: all buckets of a kind together.
struct TrafficLine {
  model_spec::BucketKind kind{};
  std::string operation;  // "gather, forward", "gather, backward", "reduce", "replica_reduce"
  std::string wire;       // "bf16", "fp8", "fp32_all_to_all"
  Moved moved;
};
/// Of one training step, without what travels inside operations (dispatch and combine of tokens) and the vote.
std::vector<TrafficLine> step_traffic(const config::Config& config, const placement::Placement& placement,
                                      const TrafficChoices& choices);
/// The sum of the lines of an operation.
Moved total(const std::vector<TrafficLine>& lines, const std::string& operation);

const char* name(GradientExchange exchange);
const char* name(model_spec::BucketKind kind);

}  // namespace ganymede::plan
