#include "services/worker/engine/communicators.h"

#include <numeric>
#include <string>

#include "common/base/error.h"
#include "common/placement/matrices.h"
#include "common/plan/traffic.h"

namespace ganymede::worker {
namespace {

using collectives::Communicator;

TrafficLine& line_of(TrafficLines& lines, const std::string& operation, const collectives::Cargo& cargo) {
  for (TrafficLine& line : lines) {
    if (line.operation == operation && line.cargo.bucket == cargo.bucket && line.cargo.wire == cargo.wire) return line;
  }
  return lines.emplace_back(TrafficLine{operation, cargo});
}

void add(TrafficLines& lines, const std::string& operation, const Communicator* communicator) {
  if (communicator == nullptr) return;
  for (const collectives::Traffic& traffic : communicator->traffic()) {
    TrafficLine& line = line_of(lines, operation, traffic.cargo);
    line.inside += traffic.inside_node();
    line.between += traffic.between_nodes;
  }
}

/// Its cargo names the operation.
void add_exchange(TrafficLines& lines, const Communicator* communicator) {
  if (communicator == nullptr) return;
  for (const collectives::Traffic& traffic : communicator->traffic()) {
    TrafficLine& line = line_of(lines, traffic.cargo.bucket, {"experts", traffic.cargo.wire});
    line.inside += traffic.inside_node();
    line.between += traffic.between_nodes;
  }
}

/// Its cargo's wire names the operation: all rows are fp32.
void add_updates(TrafficLines& lines, const Communicator* communicator) {
  if (communicator == nullptr) return;
  for (const collectives::Traffic& traffic : communicator->traffic()) {
    TrafficLine& line = line_of(lines, traffic.cargo.wire, {traffic.cargo.bucket, "fp32"});
    line.inside += traffic.inside_node();
    line.between += traffic.between_nodes;
  }
}

/// The ranks that share this rank's expert buckets, if they are several and not the whole shard group.
std::vector<int> expert_sharers(const placement::Placement& placement) {
  for (const placement::Bucket& bucket : placement.buckets) {
    if (bucket.kind != model_spec::BucketKind::experts) continue;
    bool own_group = bucket.group.size() > 1 && static_cast<int>(bucket.group.size()) < placement.shard_group;
    return own_group ? bucket.group : std::vector<int>{};
  }
  return {};
}

/// Whether rows of matrices travel between the ranks that share a kind of bucket.
bool matrices_travel(const placement::Placement& placement, bool whole_group) {
  std::vector<placement::BucketMatrices> matrices = placement::matrices_of(placement);
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    bool of_all = static_cast<int>(placement.buckets[i].group.size()) == placement.shard_group;
    if (of_all == whole_group && matrices[i].travels()) return true;
  }
  return false;
}

/// The ranks of this node that gather dense buckets from one another; none where no plan does.
std::vector<int> dense_neighbours(const config::Config& config, const placement::Placement& placement) {
  plan::TrafficChoices choices = plan::choices_of(config);
  for (const placement::Bucket& bucket : placement.buckets) {
    if (plan::resharded_in_node(config, bucket, choices)) {
      return plan::node_share(config, placement, bucket, 0).members;
    }
  }
  return {};
}

}  // namespace

Communicators::Communicators(int rank, int world, double timeout_seconds, const MakeCommunicator& make) {
  collectives::Group everyone;
  everyone.name = control_name;
  everyone.rank = rank;
  everyone.timeout_seconds = timeout_seconds;
  everyone.ranks.resize(static_cast<std::size_t>(world));
  std::iota(everyone.ranks.begin(), everyone.ranks.end(), 0);
  control_ = make(everyone);
}

Communicators::Communicators(const config::Config& config, const placement::Placement& placement,
                             double timeout_seconds, const MakeCommunicator& make)
    : Communicators(placement.rank, placement.world, timeout_seconds, make) {
  form(config, placement, 0, timeout_seconds, make);
}

void Communicators::clear() {
  for (auto* one : all())
    if (one != &control_) one->reset();
}

void Communicators::form(const config::Config& config, const placement::Placement& placement, std::uint64_t epoch,
                         double timeout_seconds, const MakeCommunicator& make) {
  shard_group_ = static_cast<std::size_t>(placement.shard_group);
  collectives::Group group;
  group.rank = placement.rank;
  group.timeout_seconds = timeout_seconds;
  auto form = [&](const std::string& name, int number, const std::vector<int>& ranks) {
    group.name = epoch == 0 ? fmt::format("{}.{}", name, number) : fmt::format("{}.{}.epoch{}", name, number, epoch);
    group.ranks = ranks;
    return make(group);
  };
  if (shard_group_ > 1) {
    gather_ = form("gather", placement.replica, placement.shard_ranks);
    reduce_ = form("reduce", placement.replica, placement.shard_ranks);
  }
  if (std::vector<int> neighbours = dense_neighbours(config, placement); neighbours.size() > 1) {
    node_gather_ = form("gather.node", neighbours.front(), neighbours);
  }
  if (placement.replicas > 1) replica_reduce_ = form("reduce.replicas", placement.shard_index, placement.replica_ranks);
  if (placement.sharded_state)
    replica_gather_ = form("gather.replicas", placement.shard_index, placement.replica_ranks);
  if (std::vector<int> sharers = expert_sharers(placement); !sharers.empty()) {
    expert_gather_ = form("gather.experts", sharers.front(), sharers);
    expert_reduce_ = form("reduce.experts", sharers.front(), sharers);
  }
  if (matrices_travel(placement, true)) update_ = form("update", placement.replica, placement.shard_ranks);
  if (matrices_travel(placement, false)) {
    std::vector<int> sharers = expert_sharers(placement);
    expert_update_ = form("update.experts", sharers.front(), sharers);
  }
  if (placement.expert_group > 1) exchange_ = form("exchange", placement.expert_ranks.front(), placement.expert_ranks);
}

Communicator& Communicators::gather(const placement::Bucket& bucket) {
  return bucket.group.size() == shard_group_ ? *gather_ : *expert_gather_;
}

Communicator& Communicators::reduce(const placement::Bucket& bucket) {
  return bucket.group.size() == shard_group_ ? *reduce_ : *expert_reduce_;
}

Communicator& Communicators::update(const placement::Bucket& bucket) {
  return bucket.group.size() == shard_group_ ? *update_ : *expert_update_;
}

void Communicators::abort() {
  for (auto* one : all())
    if (*one) (*one)->abort();
}

TrafficLines Communicators::traffic() const {
  TrafficLines lines;
  for (const auto* one : {&gather_, &node_gather_, &expert_gather_, &replica_gather_}) add(lines, "gather", one->get());
  for (const auto* one : {&reduce_, &expert_reduce_}) add(lines, "reduce", one->get());
  add(lines, "replica_reduce", replica_reduce_.get());
  add_exchange(lines, exchange_.get());
  for (const auto* one : {&update_, &expert_update_}) add_updates(lines, one->get());
  add(lines, "control", control_.get());
  return lines;
}

TrafficLines since(const TrafficLines& now, const TrafficLines& before) {
  TrafficLines added;
  TrafficLines earlier = before;
  for (const TrafficLine& line : now) {
    const TrafficLine& known = line_of(earlier, line.operation, line.cargo);
    TrafficLine more{line.operation, line.cargo, line.inside - known.inside, line.between - known.between};
    if (more.inside + more.between > 0) added.push_back(more);
  }
  return added;
}

}  // namespace ganymede::worker
