#include "common/placement/sharing.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "common/placement/buckets.h"
#include "common/placement/cutting.h"

namespace ganymede::placement {
namespace {

using model_spec::BucketKind;

/// The members of a shard group that share a bucket: first, first + stride, …
struct Members {
  int first = 0, stride = 1, count = 1;
};

Members members_of(const Placement& placement, const Bucket& bucket, int place) {
  if (bucket.kind != BucketKind::experts) return {0, 1, placement.shard_group};
  return {place, placement.expert_group, placement.shard_group / placement.expert_group};
}

/// The buckets of every place of an expert group. Places with as many experts have buckets of the same sizes, so one
/// place stands for all of them.
class Places {
 public:
  Places(const Placement& placement, int experts) : placement_(placement), experts_(experts) {
    for (int place : {0, placement.expert_group - 1}) {
      ExpertRange range = of(place);
      if (range.count != placement.local_experts) others_ = fill_buckets(placement.parameters, range);
    }
  }

  /// Whether they hold as many experts each.
  bool alike() const { return others_.empty(); }
  int experts(int place) const { return of(place).count; }
  const Bucket& bucket(std::size_t index, int place) const {
    return experts(place) == placement_.local_experts ? placement_.buckets[index] : others_[index];
  }

 private:
  ExpertRange of(int place) const { return experts_of_place(experts_, placement_.expert_group, place); }

  const Placement& placement_;
  int experts_;
  std::vector<Bucket> others_;  // of the places that do not hold as many experts as this rank's
};

/// Whether a dense bucket's cut also makes up for experts that are not shared evenly.
enum class DenseCut { even, compensating };

/// The cuts of all buckets of one shard group, made in forward order: each bucket's levels out what those before it
/// left uneven.
class Cutting {
 public:
  Cutting(const Placement& placement, const Places& places, CutUnit experts_unit, DenseCut dense)
      : placement_(placement),
        places_(places),
        experts_unit_(experts_unit),
        dense_(dense),
        dense_loads_(placement.shard_group, 0),
        expert_loads_(placement.shard_group, 0) {
    for (std::size_t index = 0; index < placement.buckets.size(); index++) cut_for_all(index);
  }

  CutUnit unit(const Bucket& bucket) const {
    return bucket.kind == BucketKind::experts ? experts_unit_ : CutUnit::rows;
  }

  /// Whether the ranks' elements differ by at most this part of the least.
  bool within(double part) const {
    std::int64_t least = std::numeric_limits<std::int64_t>::max(), most = 0;
    for (int i = 0; i < placement_.shard_group; i++) {
      least = std::min(least, dense_loads_[i] + expert_loads_[i]);
      most = std::max(most, dense_loads_[i] + expert_loads_[i]);
    }
    return static_cast<double>(most - least) <= part * static_cast<double>(least);
  }

  /// Elements of the rank that holds most.
  double most() const {
    std::int64_t most = 0;
    for (int i = 0; i < placement_.shard_group; i++) most = std::max(most, dense_loads_[i] + expert_loads_[i]);
    return static_cast<double>(most);
  }

  std::vector<std::vector<std::int64_t>> cuts;  // by bucket, for the ranks with this rank's place

 private:
  void cut_for_all(std::size_t index) {
    bool experts = placement_.buckets[index].kind == BucketKind::experts;
    int places = experts ? placement_.expert_group : 1;
    for (int place = 0; place < places; place++) {
      const Bucket& bucket = experts ? places_.bucket(index, place) : placement_.buckets[index];
      Members members = members_of(placement_, bucket, place);
      std::vector<std::int64_t> cut = cut_for(bucket, members, place);
      for (int i = 0; i < members.count; i++) {
        (experts ? expert_loads_ : dense_loads_)[members.first + i * members.stride] += cut[i + 1] - cut[i];
      }
      if (places == 1 || place == placement_.expert_place) cuts.push_back(std::move(cut));
    }
  }

  std::vector<std::int64_t> cut_for(const Bucket& bucket, const Members& members, int place) const {
    std::vector<std::int64_t> loads;
    for (int i = 0; i < members.count; i++) loads.push_back(load(bucket, members.first + i * members.stride));
    switch (unit(bucket)) {
      case CutUnit::experts:
        return cut_at_experts(bucket, places_.experts(place), members.count);
      case CutUnit::matrices:
        return cut_at_matrices(bucket, loads);
      case CutUnit::rows:
        break;
    }
    return cut_at_rows(bucket, placement_.parameters, {0, bucket.elements}, loads);
  }

  std::int64_t load(const Bucket& bucket, int index) const {
    if (bucket.kind == BucketKind::experts) return expert_loads_[index];
    return dense_loads_[index] + (dense_ == DenseCut::compensating ? expert_loads_[index] : 0);
  }

  const Placement& placement_;
  const Places& places_;
  CutUnit experts_unit_;
  DenseCut dense_;
  // Elements by index in the shard group, of the buckets so far.
  std::vector<std::int64_t> dense_loads_, expert_loads_;
};

/// Places that are not alike cannot be brought to one level by cuts of their own buckets: dense ones make up for it as
/// far as they go, and matrices stay whole where rows would not take 5% off the rank that holds most.
Cutting choose_cuts(const Placement& placement, const Places& places) {
  constexpr double tolerance = 0.05;
  int sharers = placement.shard_group / placement.expert_group, last = placement.expert_group - 1;
  if (places.experts(0) % sharers == 0 && places.experts(last) % sharers == 0) {
    return {placement, places, CutUnit::experts, places.alike() ? DenseCut::even : DenseCut::compensating};
  }
  Cutting evenly(placement, places, CutUnit::matrices, DenseCut::even);
  if (evenly.within(tolerance)) return evenly;
  Cutting whole_matrices(placement, places, CutUnit::matrices, DenseCut::compensating);
  if (whole_matrices.within(tolerance)) return whole_matrices;
  if (places.alike()) return {placement, places, CutUnit::rows, DenseCut::even};
  Cutting rows(placement, places, CutUnit::rows, DenseCut::compensating);
  return whole_matrices.most() <= (1 + tolerance) * rows.most() ? whole_matrices : rows;
}

}  // namespace

void share_out(Placement& placement, int experts) {
  Places places(placement, experts);
  Cutting cutting = choose_cuts(placement, places);
  std::vector<std::int64_t> replica_loads(placement.replicas, 0);
  for (std::size_t b = 0; b < placement.buckets.size(); b++) {
    Bucket& bucket = placement.buckets[b];
    Members members = members_of(placement, bucket, placement.expert_place);
    for (int i = 0; i < members.count; i++) {
      bucket.group.push_back(placement.shard_ranks[members.first + i * members.stride]);
    }
    bucket.index_in_group = (placement.shard_index - members.first) / members.stride;
    bucket.unit = cutting.unit(bucket);
    bucket.cut = std::move(cutting.cuts[b]);
    FlatRange own{bucket.range_begin(), bucket.range_begin() + bucket.range_elements()};
    bucket.slice = cut_at_rows(bucket, placement.parameters, own, replica_loads);
    for (int r = 0; r < placement.replicas; r++) replica_loads[r] += bucket.slice[r + 1] - bucket.slice[r];
    if (placement.sharded_state) bucket.slice_held = placement.replica;
    bucket.shard_offset = placement.shard_elements;
    placement.shard_elements += aligned(bucket.shard_elements());
  }
  placement.shard_elements = std::max(placement.shard_elements, alignment);
}

}  // namespace ganymede::placement
