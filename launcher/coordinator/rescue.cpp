#include "launcher/coordinator/rescue.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>

namespace ganymede::coordinator {
namespace {

/// See placement.h: rank = replica · shard_group + index in the shard group.
std::optional<int> holder_of(int index, int shard_group, int replicas, const std::vector<int>& lost) {
  for (int replica = 0; replica < replicas; ++replica) {
    int rank = replica * shard_group + index;
    if (std::find(lost.begin(), lost.end(), rank) == lost.end()) return rank;
  }
  return std::nullopt;
}

}  // namespace

std::uint64_t RescueOrder::replicas_for(int rank) const {
  for (const StandIn& one : stand_ins)
    if (one.rank == rank) return one.replicas;
  return 0;
}

std::variant<std::vector<StandIn>, std::string> stand_ins(const config::Config& config, const std::vector<int>& lost) {
  int replicas = config.parallel.replicas, shard_group = config.parallel.ranks / replicas;
  bool slices = config.replicas.state == config::ReplicaState::sharded;
  if (replicas > std::numeric_limits<std::uint64_t>::digits) return fmt::format("there are {} replicas", replicas);
  std::map<int, std::uint64_t> found;
  for (int rank : lost) {
    if (slices && replicas > 1) return "with replicas.state = sharded each rank holds state that no other has";
    auto holder = holder_of(rank % shard_group, shard_group, replicas, lost);
    if (!holder) return fmt::format("no rank that remains holds the state of rank {}", rank);
    found[*holder] |= std::uint64_t{1} << (rank / shard_group);
  }
  std::vector<StandIn> all;
  for (const auto& [rank, mask] : found) all.push_back({rank, mask});
  return all;
}

}  // namespace ganymede::coordinator
