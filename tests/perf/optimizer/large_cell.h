#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "common/config/config.h"
#include "common/placement/placement.h"
#include "common/step_protocol/control_block.h"
#include "services/optimizer/cell_memory.h"
#include "tests/perf/optimizer/aligned.h"

namespace ganymede::optimizer {

/// One rank's cell of a dense model (embedding and head of width 1024) in plain memory, published in bf16.
class LargeCell {
 public:
  /// About `millions` · 2^20 parameters, 18 bytes each: master, gradient, two moments, working copy. With strips for
  /// `threads` threads.
  LargeCell(int millions, int threads);
  LargeCell(const LargeCell&) = delete;
  LargeCell& operator=(const LargeCell&) = delete;

  /// Writes the record of the next step and decides it.
  void decide(double clip_factor);

  std::size_t elements() const { return memory.master.size(); }
  std::int64_t row_elements() const { return config_.model.hidden; }
  std::span<float> gradients() { return gradients_; }

  placement::Placement placement;
  CellMemory memory;

 private:
  config::Config config_;
  std::unique_ptr<step_protocol::ControlBlock> control_;
  std::unique_ptr<step_protocol::EpochWords> words_;
  PageVector<float> gradients_, master_, first_, second_, redo_;
  PageVector<std::byte> working_;
  std::vector<step_protocol::Word> ready_, marks_, flags_;
  std::vector<step_protocol::StripWords> strips_;
};

}  // namespace ganymede::optimizer
