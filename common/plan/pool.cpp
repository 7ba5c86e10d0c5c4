#include "common/plan/pool.h"

#include <algorithm>

#include "common/plan/plan.h"

namespace ganymede::plan {

std::int64_t pool_bytes(const config::Config& config, const placement::Placement& placement) {
  return std::max({build(config, placement, PlanKind::train).pool_bytes,
                   build(config, placement, PlanKind::validate).pool_bytes,
                   build(config, placement, PlanKind::update).pool_bytes});
}

bool pool_is_published(const config::Config& config) {
  bool company = config.parallel.ranks > 1 && config.topology.ranks_per_node != 1;
  return company && config.collectives.backend != config::CollectiveBackend::gloo;
}

}  // namespace ganymede::plan
