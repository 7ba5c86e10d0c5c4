#include "common/placement/placement.h"

#include <algorithm>

#include "common/base/error.h"
#include "common/placement/cutting.h"

namespace ganymede::placement {
namespace {

using model_spec::BucketKind;
using model_spec::ParameterSpec;

std::int64_t aligned(std::int64_t elements) { return (elements + alignment - 1) / alignment * alignment; }

void check_world(const config::Config& config, int rank) {
  const config::Parallel& parallel = config.parallel;
  if (parallel.replicas != 1) {
    fail_usage("parallel.replicas = {} is not supported yet: set it to 1, the ranks then hold one sharded copy",
               parallel.replicas);
  }
  if (parallel.ranks < 1 || parallel.expert_group < 1 || parallel.ranks % parallel.expert_group != 0) {
    fail_usage("parallel.ranks = {} is not a multiple of parallel.expert_group = {}: change one of them",
               parallel.ranks, parallel.expert_group);
  }
  if (rank < 0 || rank >= parallel.ranks) {
    fail_usage("rank {} is not in a world of parallel.ranks = {}", rank, parallel.ranks);
  }
  if (config.model.experts == 0) return;
  if (config.model.experts % parallel.expert_group != 0) {
    fail_usage("model.experts = {} cannot be split evenly over parallel.expert_group = {}: change one of them",
               config.model.experts, parallel.expert_group);
  }
  std::int64_t matrix = std::int64_t{config.model.expert_ffn} * config.model.hidden;
  if (matrix % alignment != 0) {
    fail_usage(
        "model.expert_ffn × model.hidden = {} is not a multiple of {}: an expert's gate and up projection must lie "
        "next to each other; make one of them a multiple of {}",
        matrix, alignment, alignment);
  }
}

std::string bucket_name(const ParameterSpec& parameter) {
  switch (parameter.bucket) {
    case BucketKind::embed:
      return "embed";
    case BucketKind::dense:
      return fmt::format("layer.{}.dense", parameter.layer);
    case BucketKind::experts:
      return fmt::format("layer.{}.experts", parameter.layer);
    case BucketKind::head:
      return "head";
  }
  impossible(__FILE__, __LINE__, "unknown kind of bucket");
}

/// Buckets with their parameters at their offsets; experts of other places are left out.
std::vector<Bucket> fill_buckets(const Placement& placement) {
  std::vector<Bucket> buckets;
  for (int i = 0; i < static_cast<int>(placement.parameters.size()); i++) {
    const ParameterSpec& parameter = placement.parameters[i];
    int local = parameter.expert - placement.first_expert;
    if (parameter.expert >= 0 && (local < 0 || local >= placement.local_experts)) continue;
    std::string name = bucket_name(parameter);
    if (buckets.empty() || buckets.back().name != name) {
      buckets.emplace_back();
      buckets.back().name = name;
      buckets.back().kind = parameter.bucket;
      buckets.back().layer = parameter.layer;
    }
    Bucket& bucket = buckets.back();
    bucket.parameters.push_back({i, bucket.elements});
    bucket.elements += aligned(parameter.elements());
  }
  return buckets;
}

void share_out(Placement& placement) {
  int moe_layers = 0;
  for (Bucket& bucket : placement.buckets) {
    bool experts = bucket.kind == BucketKind::experts;
    int stride = experts ? placement.expert_group : 1;
    int first = experts ? placement.expert_place : 0;
    for (int rank = first; rank < placement.world; rank += stride) bucket.group.push_back(rank);
    bucket.index_in_group = (placement.rank - first) / stride;
    auto members = static_cast<int>(bucket.group.size());
    bucket.cut = experts ? cut_at_experts(bucket, placement.local_experts, members, moe_layers++)
                         : cut_at_rows(bucket, placement.parameters, members);
    bucket.shard_offset = placement.shard_elements;
    placement.shard_elements += aligned(bucket.shard_elements());
  }
}

void add_chunks(Placement& placement, int bucket, int parameter, std::int64_t first, std::int64_t shard_offset,
                std::int64_t count) {
  for (std::int64_t done = 0; done < count; done += chunk_elements) {
    Chunk chunk;
    chunk.bucket = bucket;
    chunk.parameter = parameter;
    chunk.first = first + done;
    chunk.shard_offset = shard_offset + done;
    chunk.count = std::min(chunk_elements, count - done);
    placement.chunks.push_back(chunk);
  }
}

/// Owned ranges and chunks of one bucket: for each parameter its part of the shard, then the gap behind it.
void own(Placement& placement, int index) {
  const Bucket& bucket = placement.buckets[index];
  for (const PlacedParameter& placed : bucket.parameters) {
    std::int64_t end = placed.offset + placement.parameters[placed.parameter].elements();
    std::int64_t gap_end = aligned(end);
    auto clamp = [&](std::int64_t at) {
      return std::clamp(at, bucket.shard_begin(), bucket.shard_begin() + bucket.shard_elements());
    };
    auto in_shard = [&](std::int64_t at) { return bucket.shard_offset + at - bucket.shard_begin(); };
    std::int64_t from = clamp(placed.offset), to = clamp(end), gap_to = clamp(gap_end);
    if (to > from) {
      placement.owned.push_back({placed.parameter, index, from - placed.offset, to - from, in_shard(from)});
      add_chunks(placement, index, placed.parameter, from - placed.offset, in_shard(from), to - from);
    }
    if (gap_to > to) add_chunks(placement, index, -1, 0, in_shard(to), gap_to - to);
  }
}

}  // namespace

int Placement::bucket(const std::string& name) const {
  for (std::size_t i = 0; i < buckets.size(); i++) {
    if (buckets[i].name == name) return static_cast<int>(i);
  }
  impossible(__FILE__, __LINE__, fmt::format("no bucket is named {}", name));
}

Placement build(const config::Config& config, int rank) {
  check_world(config, rank);
  Placement placement;
  placement.rank = rank;
  placement.world = config.parallel.ranks;
  placement.expert_group = config.parallel.expert_group;
  placement.shard_group = placement.world;
  placement.expert_place = rank % placement.expert_group;
  placement.local_experts = config.model.experts / placement.expert_group;
  placement.first_expert = placement.expert_place * placement.local_experts;
  for (int place = 0; place < placement.expert_group; place++) {
    placement.expert_ranks.push_back(rank - placement.expert_place + place);
  }
  placement.parameters = model_spec::parameters(config.model);
  placement.buckets = fill_buckets(placement);
  share_out(placement);
  for (int i = 0; i < static_cast<int>(placement.buckets.size()); i++) own(placement, i);
  if (placement.chunks.empty()) {
    fail_usage("rank {} of parallel.ranks = {} would own no part of the model: use fewer ranks or a larger model", rank,
               placement.world);
  }
  return placement;
}

RowRange rows_of(const config::Config& config, int rank) {
  int rows = config.data.rows_per_step, ranks = config.parallel.ranks;
  if (rows % ranks != 0) {
    int fitting = std::max(ranks, (rows + ranks / 2) / ranks * ranks);
    fail_usage("data.rows_per_step = {} cannot be divided by parallel.ranks = {}: the nearest that can is {}", rows,
               ranks, fitting);
  }
  return {rank * (rows / ranks), rows / ranks};
}

}  // namespace ganymede::placement
