#include "common/collectives/traffic_counter.h"

namespace ganymede::collectives {

void TrafficCounter::add(const std::string& operation, const Cargo& cargo, std::uint64_t inside_node,
                         std::uint64_t between_nodes) {
  std::lock_guard lock(mutex_);
  Sums& sums = sums_[{operation, cargo.bucket, cargo.wire}];
  sums.inside += inside_node;
  sums.between += between_nodes;
}

std::vector<Traffic> TrafficCounter::all() const {
  std::lock_guard lock(mutex_);
  std::vector<Traffic> result;
  for (const auto& [key, sums] : sums_) {
    const auto& [operation, bucket, wire] = key;
    result.push_back({operation, {bucket, wire}, sums.inside + sums.between, sums.between});
  }
  return result;
}

}  // namespace ganymede::collectives
