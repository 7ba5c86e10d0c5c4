#include "common/cell/handover.h"

#include <algorithm>

#include "common/placement/matrices.h"
#include "common/plan/matrix_updates.h"

namespace ganymede::shm {

HandoverRoom handover_room(const config::Config& config, const placement::Placement& placement) {
  bool all = config.newton_schulz.where == config::OrthogonaliseWhere::optimizer;
  std::vector<placement::BucketMatrices> matrices = placement::matrices_of(placement);
  HandoverRoom room;
  auto take = [&](const placement::MatrixBatch& batch, std::int64_t together) {
    bool updated = batch.updater >= 0;
    if (!all && !updated) return;
    room.elements = std::max(room.elements, together * batch.rows * batch.columns);
    if (!updated) return;
    room.row_values = std::max(room.row_values, together * batch.rows * batch.row_slots);
    room.matrices = std::max(room.matrices, together);
  };
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    int own = placement.buckets[i].index_in_group;
    for (bool whole : {false, true}) {
      for (const auto& batch : placement::batches_of(matrices[i], own, whole)) {
        auto count = static_cast<std::int64_t>(batch.matrices.size());
        take(batch, whole ? plan::batch_size(batch.rows, batch.columns, count) : count);
      }
    }
  }
  return room;
}

Handover handover_of(Segment& matrices) {
  Handover handover;
  handover.words = reinterpret_cast<HandoverWords*>(matrices.span<step_protocol::Word>("handover").data());
  handover.in = matrices.span<float>("handover_in");
  handover.out = matrices.span<float>("handover_out");
  handover.rows_in = matrices.span<float>("handover_rows_in");
  handover.rows_out = matrices.span<float>("handover_rows_out");
  handover.parameter = matrices.span<step_protocol::Word>("handover_parameter");
  return handover;
}

}  // namespace ganymede::shm
