#pragma once

#include "services/worker/model/tensors.h"

namespace ganymede::worker::model {

/// Rows sorted by the experts of this place that they go to: a slot is one (row, choice) pair. Stable: slots of an
/// expert are in order of row, so nothing depends on timing.
struct ExpertOrder {
  std::vector<std::int64_t> begin;     // first slot of each of the L experts, then the number of slots
  std::vector<std::int32_t> row;       // of each slot
  std::vector<std::int32_t> choice;    // of each slot: 0 … K-1
  std::vector<std::int64_t> position;  // slot of each (row, choice), -1 if another place computes it

  std::int64_t slots() const { return begin.back(); }
  std::int64_t experts() const { return static_cast<std::int64_t>(begin.size()) - 1; }
  std::int64_t size(std::int64_t expert) const {
    return begin[static_cast<std::size_t>(expert) + 1] - begin[static_cast<std::size_t>(expert)];
  }
};

/// `indices`: int32 [n, K], experts of the whole model; those in [first, first + local) are this place's.
ExpertOrder order_by_expert(const at::Tensor& indices, std::int64_t first, std::int64_t local);

}  // namespace ganymede::worker::model
