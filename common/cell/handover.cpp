#include "common/cell/handover.h"

#include <algorithm>

#include "common/placement/matrices.h"
#include "common/plan/matrix_updates.h"

namespace ganymede::shm {

std::int64_t handover_elements(const config::Config& config, const placement::Placement& placement) {
  if (config.newton_schulz.where == config::OrthogonaliseWhere::worker) return 0;
  std::vector<placement::BucketMatrices> matrices = placement::matrices_of(placement);
  std::int64_t most = 0;
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    int own = placement.buckets[i].index_in_group;
    for (const auto& batch : placement::batches_of(matrices[i], own, false)) most = std::max(most, batch.elements());
    for (const auto& batch : placement::batches_of(matrices[i], own, true)) {
      auto count = static_cast<std::int64_t>(batch.matrices.size());
      most = std::max(most, plan::batch_size(batch.rows, batch.columns, count) * batch.rows * batch.columns);
    }
  }
  return most;
}

Handover handover_of(Segment& matrices) {
  Handover handover;
  handover.words = reinterpret_cast<HandoverWords*>(matrices.span<step_protocol::Word>("handover").data());
  handover.in = matrices.span<float>("handover_in");
  handover.out = matrices.span<float>("handover_out");
  return handover;
}

}  // namespace ganymede::shm
