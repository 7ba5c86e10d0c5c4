#pragma once

#include <cstdint>
#include <vector>

#include "common/plan/builder.h"
#include "common/plan/expert_passes.h"
#include "common/plan/gradients.h"
#include "common/plan/parameters.h"
#include "common/plan/saved.h"

namespace ganymede::plan {

/// Computation of a layer for the rows of one micro-batch, and what is kept of it: hidden states, saved inputs and
/// activations.
class Passes {
 public:
  Passes(Builder& builder, Parameters& parameters, Gradients& gradients, int rows);

  /// What follows is of rows `first` … `end` - 1.
  void take_rows(int first, int end);

  void embed();
  void forward(int layer, bool keep);
  void offload(int layer);
  int head_loss();  // its last operation
  void head_backward();
  void prefetch(int layer);
  void backward(int layer);
  /// Its gradient does not depend on the embedding itself; `with_parameters`: it has it none the less.
  void embed_backward(bool with_parameters);

 private:
  int new_hidden(BufferKind kind, const char* what, int layer, int row);

  Builder& builder_;
  Parameters& parameters_;
  Gradients& gradients_;
  int first_ = 0, end_ = 0;
  std::int64_t hidden_;
  int offloaded_;
  bool recompute_;
  std::vector<int> input_;  // per row: the newest hidden state
  std::vector<int> grad_;   // per row: gradient by the newest hidden state
  std::vector<std::vector<SavedBuffers>> saved_;
  ExpertPasses experts_;  // the passes over layers whose tokens travel to other ranks
};

}  // namespace ganymede::plan
