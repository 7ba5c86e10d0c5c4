#include <algorithm>

#include "common/collectives/topology.h"
#include "common/plan/plan.h"
#include "common/plan/traffic.h"

namespace ganymede::plan {

using model_spec::BucketKind;

int micro_batch_rows(const config::Config& config, int rows) {
  return config.micro_batch.rows == 0 ? rows : std::min(rows, config.micro_batch.rows);
}

int micro_batches(const config::Config& config, int rows) {
  int of_one = std::max(1, micro_batch_rows(config, rows));
  return std::max(1, (rows + of_one - 1) / of_one);
}

GatherCount gathers_of(const config::Config& config, const placement::Bucket& bucket, const TrafficChoices& choices) {
  if (in_place(bucket) || choices.keep_gathered) return {1, 0};
  int passes = choices.micro_batches;
  bool embed = bucket.kind == BucketKind::embed, head = bucket.kind == BucketKind::head;
  bool at_end = head || bucket.layer == config.model.layers - 1;                    // backward follows forward
  bool at_begin = !head && (embed ? !choices.reuse_embedding : bucket.layer == 0);  // forward follows backward
  GatherCount count{passes, passes};
  if (embed && choices.reuse_embedding) count.backward = 0;
  if (choices.keep_last && at_end) count.backward = 0;
  if (choices.keep_last && at_begin) count.forward = 1;
  return count;
}

bool resharded_in_node(const config::Config& config, const placement::Bucket& bucket, const TrafficChoices& choices) {
  if (choices.dense_reshard != Reshard::node || bucket.kind == BucketKind::experts) return false;
  if (in_place(bucket) || gathers_of(config, bucket, choices).all() == 1) return false;
  return node_of(config, bucket.group.front()) != node_of(config, bucket.group.back());
}

NodeShare node_share(const config::Config& config, const placement::Placement& placement,
                     const placement::Bucket& bucket, std::int64_t bytes) {
  NodeShare kept;
  for (int rank : bucket.group) {
    if (rank == placement.rank) kept.place = static_cast<int>(kept.members.size());
    if (node_of(config, rank) == node_of(config, placement.rank)) kept.members.push_back(rank);
  }
  auto all = static_cast<std::size_t>(bytes), unit = static_cast<std::size_t>(buffer_alignment);
  int members = static_cast<int>(kept.members.size());
  for (int member = 0; member < members; ++member) {
    kept.cut.push_back(std::min(collectives::share({0, (all + unit - 1) / unit}, members, member).begin * unit, all));
  }
  kept.cut.push_back(all);
  return kept;
}

}  // namespace ganymede::plan
