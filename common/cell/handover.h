#pragma once

#include <span>

#include "common/config/config.h"
#include "common/placement/placement.h"
#include "common/shm/segment.h"
#include "common/step_protocol/control_block.h"

/// How a worker hands matrices over to the optimizer server of its cell: to have them orthogonalised
/// (newton_schulz.where = optimizer), and to have update_matrix of their optimizer, which is not loaded by workers.
namespace ganymede::shm {

/// What is wanted of a batch, in this order: bits of HandoverWords::work.
constexpr std::uint64_t handover_orthogonalise = 1, handover_update = 2;

/// Written by the worker, in this order: matrices, shape, `request` = its last value + 1. Then by the optimizer server:
/// results, `overflowed`, `answer` = request. Whoever comes after a kill goes on from these words.
struct HandoverWords {
  step_protocol::Word rows, columns, count;  // equal matrices, one behind the other
  step_protocol::Word request;
  step_protocol::Word overflowed;  // 1 + the first matrix that did not stay finite; 0: none
  step_protocol::Word answer;
  step_protocol::Word work;  // what is wanted, by the worker
  step_protocol::Word step;  // of whose record the values are that update_matrix gets, by the worker
};

struct Handover {
  HandoverWords* words = nullptr;
  std::span<float> in, out;                  // matrices
  std::span<float> rows_in, rows_out;        // of each matrix the values of its per-row slots, [rows][slots per row]
  std::span<step_protocol::Word> parameter;  // of each matrix
};

/// Most of a batch; zero where nothing is handed over.
struct HandoverRoom {
  std::int64_t elements = 0;
  // With update_matrix:
  std::int64_t row_values = 0, matrices = 0;
};
HandoverRoom handover_room(const config::Config& config, const placement::Placement& placement);

/// The view of the mapped segment `matrices`. Valid as long as it is mapped.
Handover handover_of(Segment& matrices);

}  // namespace ganymede::shm
