#include "common/placement/placement.h"

#include <algorithm>

#include "common/base/error.h"
#include "common/placement/buckets.h"
#include "common/placement/sharing.h"

namespace ganymede::placement {
namespace {

/// The multiple of `unit` nearest to `value`, at least one unit; the smaller of two that are equally near.
int nearest_multiple(int value, int unit) {
  int below = value / unit * unit;
  return below == 0 || (value - below) * 2 > unit ? below + unit : below;
}

void check_world(const config::Config& config, int rank) {
  const config::Parallel& parallel = config.parallel;
  int unit = parallel.replicas * parallel.expert_group;
  if (parallel.ranks < 1 || unit < 1 || parallel.ranks % unit != 0) {
    fail_usage(
        "parallel.ranks = {} is not a multiple of parallel.replicas · parallel.expert_group = {} · {}: the nearest "
        "that "
        "is one is {}",
        parallel.ranks, parallel.replicas, parallel.expert_group, nearest_multiple(parallel.ranks, std::max(unit, 1)));
  }
  if (rank < 0 || rank >= parallel.ranks) {
    fail_usage("rank {} is not in a world of parallel.ranks = {}", rank, parallel.ranks);
  }
  if (config.model.experts > 0 && config.model.experts < parallel.expert_group) {
    fail_usage("parallel.expert_group = {} is more than the model.experts = {} of a layer: each rank of it holds one",
               parallel.expert_group, config.model.experts);
  }
}

void add_chunks(Placement& placement, Chunk next, std::int64_t count) {
  for (; count > 0; count -= next.count) {
    next.count = std::min(chunk_elements, count);
    placement.chunks.push_back(next);
    next.first += next.count;
    next.shard_offset += next.count;
  }
}

/// Owned ranges and chunks of what one replica answers for in a bucket: for each parameter its part, then the gap
/// behind it.
void own(Placement& placement, int index, int replica) {
  const Bucket& bucket = placement.buckets[index];
  auto clamp = [&](std::int64_t at) { return std::clamp(at, bucket.slice[replica], bucket.slice[replica + 1]); };
  auto in_shard = [&](std::int64_t at) { return bucket.shard_offset + at - bucket.shard_begin(); };
  for (std::size_t i = 0; i < bucket.parameters.size(); i++) {
    const PlacedParameter& placed = bucket.parameters[i];
    std::int64_t end = placed.offset + placement.parameters[placed.parameter].elements();
    std::int64_t gap_end = i + 1 < bucket.parameters.size() ? bucket.parameters[i + 1].offset : bucket.elements;
    std::int64_t from = clamp(placed.offset), to = clamp(end), gap_to = clamp(gap_end);
    if (to > from) {
      auto owned = static_cast<int>(placement.owned.size());
      std::int64_t first = from - placed.offset;
      placement.owned.push_back({placed.parameter, index, first, to - from, in_shard(from), replica, {}, 0});
      Phase phase = placement.update.optimizer_of(placed.parameter).matrices ? Phase::master : Phase::whole;
      add_chunks(placement, {index, placed.parameter, first, in_shard(from), 0, replica, owned, phase}, to - from);
    }
    add_chunks(placement, {index, -1, 0, in_shard(to), 0, replica}, gap_to - to);
  }
}

/// Column by column, what is not in it is left out of the master's order; so a run in which all optimizers have as many
/// slots has columns that lie as the master does.
void place_state(Placement& placement) {
  placement.columns.assign(placement.update.columns(), placement.shard_elements);
  for (std::size_t column = 0; column < placement.columns.size(); column++) {
    std::int64_t left_out = 0;
    for (OwnedRange& range : placement.owned) {
      range.state_offset[column] = range.shard_offset - left_out;
      bool has = placement.slots_of(range.parameter) > column;
      std::int64_t held = has ? placement.state_run(range, column).count : 0;
      left_out += (range.count - held) / alignment * alignment;
    }
    placement.columns[column] -= left_out;
  }
}

/// Values of per-row slots of the owned ranges first … last, which hold one parameter; returns where they end.
std::int64_t place_row_values(Placement& placement, std::size_t first, std::size_t last, std::int64_t end) {
  for (std::size_t i = first; i <= last; i++) {
    OwnedRange& range = placement.owned[i];
    range.row_values_offset = end;
    auto slots = static_cast<std::int64_t>(placement.update.optimizer_of(range.parameter).row_slots.size());
    end += slots * placement.rows_in(range.parameter, range.first, range.count).count;
  }
  return end;
}

/// The first phases of matrices, before all else.
void place_matrices(Placement& placement) {
  std::int64_t end = 0;
  std::size_t begun = 0;  // first range of the parameter
  for (std::size_t i = 0; i < placement.owned.size(); i++) {
    OwnedRange& range = placement.owned[i];
    if (!placement.update.optimizer_of(range.parameter).matrices) continue;
    // What several replicas answer for stays one run of rows.
    bool goes_on = i > 0 && placement.owned[i - 1].parameter == range.parameter;
    if (!goes_on) begun = i;
    range.matrix_offset = goes_on ? end : aligned(end);
    end = range.matrix_offset + range.count;
    bool last = i + 1 == placement.owned.size() || placement.owned[i + 1].parameter != range.parameter;
    if (last) end = place_row_values(placement, begun, i, end);
  }
  placement.matrix_elements = aligned(end);
  std::vector<Chunk> first;
  for (Chunk chunk : placement.chunks) {
    if (chunk.phase != Phase::master) continue;
    chunk.phase = Phase::state;
    first.push_back(chunk);
  }
  placement.chunks.insert(placement.chunks.begin(), first.begin(), first.end());
}

/// Where in the world the rank stands.
Placement stand(const config::Config& config, int rank) {
  Placement placement;
  placement.rank = rank;
  placement.world = config.parallel.ranks;
  placement.expert_group = config.parallel.expert_group;
  placement.replicas = config.parallel.replicas;
  placement.shard_group = placement.world / placement.replicas;
  placement.sharded_state = placement.replicas > 1 && config.replicas.state == config::ReplicaState::sharded;
  placement.replica = rank / placement.shard_group;
  placement.shard_index = rank % placement.shard_group;
  placement.expert_place = rank % placement.expert_group;
  ExpertRange experts = experts_of_place(config.model.experts, placement.expert_group, placement.expert_place);
  placement.first_expert = experts.first;
  placement.local_experts = experts.count;
  for (int index = 0; index < placement.shard_group; index++) {
    placement.shard_ranks.push_back(rank - placement.shard_index + index);
  }
  for (int replica = 0; replica < placement.replicas; replica++) {
    placement.replica_ranks.push_back(replica * placement.shard_group + placement.shard_index);
  }
  for (int place = 0; place < placement.expert_group; place++) {
    placement.expert_ranks.push_back(rank - placement.expert_place + place);
  }
  return placement;
}

}  // namespace

int Placement::bucket(const std::string& name) const {
  for (std::size_t i = 0; i < buckets.size(); i++) {
    if (buckets[i].name == name) return static_cast<int>(i);
  }
  impossible(__FILE__, __LINE__, fmt::format("no bucket is named {}", name));
}

ParameterRows Placement::rows_in(int parameter, std::int64_t first, std::int64_t count) const {
  std::int64_t columns = parameters[static_cast<std::size_t>(parameter)].row_elements();
  std::int64_t begin = (first + columns - 1) / columns, end = (first + count + columns - 1) / columns;
  return {begin, end - begin};
}

StateRun Placement::state_run(const OwnedRange& range, std::int64_t first, std::int64_t count,
                              std::size_t column) const {
  std::int64_t begin = range.state_offset[column];
  if (!per_row(range.parameter, column)) return {begin + first - range.first, count};
  ParameterRows before = rows_in(range.parameter, range.first, first - range.first);
  return {begin + before.count, rows_in(range.parameter, first, count).count};
}

void check_replicas(const config::Config& config, const std::vector<OptimizerFacts>& optimizers) {
  bool matrices = std::any_of(optimizers.begin(), optimizers.end(), [](auto& one) { return one.matrices; });
  bool sharded = config.parallel.replicas > 1 && config.replicas.state == config::ReplicaState::sharded;
  if (!matrices || !sharded) return;
  fail_usage("replicas.state = \"sharded\" does not go with an optimizer of whole matrices: set it to \"replicated\".");
}

Placement build(const config::Config& config, int rank, const std::vector<OptimizerFacts>& optimizers) {
  check_world(config, rank);
  Placement placement = stand(config, rank);
  placement.parameters = model_spec::parameters(config.model);
  placement.update = update_groups(config.optimizer, placement.parameters, optimizers);
  placement.reductions = reductions_of(placement.update, placement.parameters);
  check_replicas(config, placement.update.optimizers);
  placement.strips = strips_of_a_thread * std::max(config.optimizer.threads, 1);
  placement.buckets = fill_buckets(placement.parameters, {placement.first_expert, placement.local_experts});
  share_out(placement, config.model.experts);
  for (int i = 0; i < static_cast<int>(placement.buckets.size()); i++) {
    for (int replica = 0; replica < placement.replicas; replica++) {
      if (!placement.sharded_state || replica == placement.replica) own(placement, i, replica);
    }
  }
  place_state(placement);
  place_matrices(placement);
  // The protocol counts chunks, so a rank that owns nothing has one without elements, as for a gap.
  if (placement.chunks.empty()) placement.chunks.push_back({.parameter = -1});
  return placement;
}

RowRange rows_of(const config::Config& config, int rank) {
  int rows = config.data.rows_per_step, ranks = config.parallel.ranks;
  if (rows % ranks != 0) {
    fail_usage("data.rows_per_step = {} cannot be divided by parallel.ranks = {}: the nearest that can is {}", rows,
               ranks, nearest_multiple(rows, ranks));
  }
  return {rank * (rows / ranks), rows / ranks};
}

}  // namespace ganymede::placement
