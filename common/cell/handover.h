#pragma once

#include <span>

#include "common/config/config.h"
#include "common/placement/placement.h"
#include "common/shm/segment.h"
#include "common/step_protocol/control_block.h"

/// How a worker has matrices orthogonalised by the optimizer server of its cell (newton_schulz.where = optimizer).
namespace ganymede::shm {

/// Written by the worker, in this order: matrices, shape, `request` = its last value + 1. Then by the optimizer server:
/// results, `overflowed`, `answer` = request. Whoever comes after a kill goes on from these words.
struct HandoverWords {
  step_protocol::Word rows, columns, count;  // equal matrices, one behind the other
  step_protocol::Word request;
  step_protocol::Word overflowed;  // 1 + the first matrix that did not stay finite; 0: none
  step_protocol::Word answer;
};

struct Handover {
  HandoverWords* words = nullptr;
  std::span<float> in, out;  // [handover_elements]
};

/// Most elements of a batch; 0 where the worker orthogonalises itself, or nothing is orthogonalised on this rank.
std::int64_t handover_elements(const config::Config& config, const placement::Placement& placement);

/// The view of the mapped segment `matrices`. Valid as long as it is mapped.
Handover handover_of(Segment& matrices);

}  // namespace ganymede::shm
