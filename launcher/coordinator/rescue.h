#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "common/config/config.h"

/// What the ranks that remain of a world hold in memory, on its way into a checkpoint before the world is left.
namespace ganymede::coordinator {

/// A rank that writes for replicas which are lost what they would have written.
struct StandIn {
  int rank = 0;
  std::uint64_t replicas = 0;  // bit r: what replica r answers for
};

struct RescueOrder {
  std::uint64_t step = 0;  // that every remaining rank has decided
  std::vector<StandIn> stand_ins;

  /// 0: it writes its own part alone.
  std::uint64_t replicas_for(int rank) const;
};

/// For each rank of `lost` one that holds the same shard and is not lost; no rank twice in the result. Or why there is
/// none, in a few words.
std::variant<std::vector<StandIn>, std::string> stand_ins(const config::Config& config, const std::vector<int>& lost);

}  // namespace ganymede::coordinator
