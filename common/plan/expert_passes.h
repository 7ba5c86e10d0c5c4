#pragma once

#include <initializer_list>
#include <vector>

#include "common/plan/builder.h"
#include "common/plan/exchange_form.h"
#include "common/plan/gradients.h"
#include "common/plan/parameters.h"
#include "common/plan/saved.h"

namespace ganymede::plan {

/// Forward and backward of layers whose tokens travel to the experts of other ranks. A row is computed in parts with
/// dispatch and combine between them, on a lane of their own; rows follow one another as in a pipeline, at most three
/// under way at once, so that a row travels beside the computation of its neighbours:
///   forward    attention and dispatch of row r | experts and combine of row r-1
///   backward   recompute and dispatch of row r | experts and combine of row r-1 | attention of row r-2
/// The lane `exchange` has the calls on the group's communicator in the order of the list, the same on all its ranks.
/// Rows keep their order in each part, and so do the sums over rows.
class ExpertPasses {
 public:
  ExpertPasses(Builder& builder, Parameters& parameters, Gradients& gradients, int rows);

  /// What follows is of rows `first` … `end` - 1.
  void take_rows(int first, int end);

  /// Whether a layer is one of them.
  bool serve(int layer) const { return travels(builder_.config, layer); }
  /// `input`: by row, the layer's input, then its output. With `keep`, fills `saved` of each row, and inputs stay.
  void forward(int layer, std::vector<int>& input, std::vector<SavedBuffers>& saved, bool keep);
  /// `gradient`: by row, changed in place. Gives back what was saved.
  void backward(int layer, const std::vector<int>& gradient, const std::vector<SavedBuffers>& saved);
  /// Lets the first operation that works on what `forward` made of a row give back the buffers of its combine: freed
  /// by the combine, everything behind it in the list would wait for it.
  void give_back(Operation& operation, int row);

 private:
  /// Exchange buffers of one row under way.
  struct Row {
    int middle = -1, own = -1, staged = -1, received = -1, results = -1, gradients = -1, returned = -1, combined = -1;
    std::vector<int> spent;  // what its combine used
  };

  Row& at(int row) { return rows_[static_cast<std::size_t>(row)]; }
  Operation compute(OperationKind kind, Part part, int layer, int row) const {
    return {.kind = kind, .lane = Lane::compute, .layer = layer, .row = row, .part = part};
  }
  /// A new buffer that the operation takes.
  int take(Operation& operation, Travel travel, bool backward = false);
  /// This rank's rows and choices in their place for dispatch, where they are not kept.
  void take_own(Operation& operation);
  void dispatch(int layer, int row, const SavedBuffers& saved, int gradient);

  void forward_attention(int layer, int row, int input, SavedBuffers& saved, bool keep);
  void forward_experts(int layer, int row, const SavedBuffers& saved);
  void forward_combine(int layer, int row, int& input, const SavedBuffers& saved);
  void recompute(int layer, int row, const SavedBuffers& saved);
  void backward_experts(int layer, int row, const SavedBuffers& saved);
  void backward_combine(int layer, int row);
  void backward_attention(int layer, int row, int gradient, const SavedBuffers& saved);

  Builder& builder_;
  Parameters& parameters_;
  Gradients& gradients_;
  int first_ = 0, end_ = 0;
  const ExchangeForm form_;
  const ExchangeBytes bytes_;
  std::vector<Row> rows_;
};

}  // namespace ganymede::plan
