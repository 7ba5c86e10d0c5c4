#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/cell/handover.h"
#include "common/service/service.h"
#include "common/wire/bucket_form.h"
#include "services/worker/model/tensors.h"

/// The memory of one cell as the worker sees it.
namespace ganymede::worker {

/// Rows that the data server has put into segment `batches`: `slots` of them, each with `rows` rows.
struct Batches {
  std::span<step_protocol::Word> words;                // [slots]
  std::span<std::uint64_t> header;                     // [slots][8]
  std::span<std::int32_t> tokens, targets, documents;  // [slots][rows][seq_len]
  int rows = 0;
  int seq_len = 0;

  /// A copy of one row as the model takes it.
  model::Row row(int slot, int index) const;
  /// Loss tokens of the whole step, all ranks together.
  std::uint64_t loss_tokens(int slot) const { return header[static_cast<std::size_t>(slot) * 8 + 1]; }
  /// Targets of this rank's rows that count for the loss.
  std::uint64_t own_loss_tokens(int slot) const;
};

struct Cell {
  service::Control control;
  std::uint64_t epoch_number = 0;  // whose optimizer updates
  service::EpochControl epoch;
  std::span<std::byte> working;    // the rank's shards of the working copy
  wire::WorkingForm working_form;  // where they lie in it, and in which format
  std::span<float> gradients;      // [shard_elements]
  std::span<const float> sent;     // [matrix_elements] of what is to be orthogonalised
  std::span<float> returned;       // [matrix_elements] of what came of it
  shm::Handover handover;          // to the optimizer server, where it has something to do with matrices
  std::span<std::byte> arena;
  Batches train;
  Batches validation;  // one slot
};

/// Maps the segments of the context's cell with those of a state epoch. Valid until the context releases the epoch.
/// Throws Error.
Cell map_cell(service::Context& context, std::uint64_t epoch);

}  // namespace ganymede::worker
