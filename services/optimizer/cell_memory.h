#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/step_protocol/control_block.h"
#include "common/wire/bucket_form.h"

namespace ganymede::optimizer {

/// The shared memory of a cell that the update works on. Views of segments in production, of plain arrays in tests;
/// whoever makes it keeps the memory alive.
struct CellMemory {
  step_protocol::ControlBlock* control = nullptr;
  step_protocol::EpochWords* words = nullptr;
  std::span<step_protocol::Word> working_copy_ready;       // [buckets]
  std::span<const std::int64_t> expert_counts;             // [MoE layers · experts], of the decided record
  std::span<const float> gradients;                        // [shard_elements]
  std::span<float> master;                                 // [shard_elements]
  std::vector<std::span<float>> state;                     // per column [Placement::columns]
  std::span<float> redo;                                   // [strips][1 + columns][tile_elements]: master, then state
  std::span<std::byte> working;                            // [working_form.bytes]
  wire::WorkingForm working_form;                          // which bucket lies there where, and in which format
  std::span<step_protocol::Word> read_marks, image_flags;  // [chunks]
  std::span<float> images;                                 // [side slots][1 + columns][chunk_elements]
  std::span<step_protocol::StripWords> strips = {};        // [Placement::strips]
  std::span<std::uint64_t> began = {};                     // EpochState::began; none: all of it began with the run
  std::span<const double> reductions = {};                 // [Reductions::elements], of the decided record
  // Of matrices, where an optimizer updates some.
  std::span<step_protocol::Word> matrices_sent = {};            // [buckets]
  std::span<const step_protocol::Word> matrices_returned = {};  // [buckets]
  std::span<float> sent = {};                                   // [matrix_elements]: what is to be orthogonalised
  std::span<const float> returned = {};                         // [matrix_elements]: what became of it
};

}  // namespace ganymede::optimizer
