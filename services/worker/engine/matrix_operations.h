#pragma once

#include <map>
#include <optional>
#include <vector>

#include "common/newton_schulz/orthogonalise.h"
#include "common/placement/matrices.h"
#include "services/worker/engine/executor/executor.h"
#include "services/worker/engine/matrix_places.h"
#include "services/worker/engine/workbench.h"
#include "services/worker/muon/torch_products.h"

namespace ganymede::worker {

/// update_send, orthogonalise and update_return: the part of an update of whole matrices that lies between the two
/// phases of the optimizer server (rule 14). Everything is a function of what the first phase has left in the segment
/// `matrices`, so it may be done again, on all ranks, until all have committed the step. Nothing happens for a step
/// that is skipped or that another epoch's optimizer applies.
class MatrixOperations {
 public:
  MatrixOperations(Workbench& bench, const plan::StepPlan& plan);
  void install(OperationTable& table);

 private:
  void send(const plan::Operation& operation);
  void orthogonalise(const plan::Operation& operation);
  void bring_back(const plan::Operation& operation);

  bool skipped() const {
    const step_protocol::DecisionRecord& record = bench_.pass.record;
    return record.apply == 0 || record.state_epoch != bench_.cell.epoch_number;
  }
  bool returned_already(int bucket) const;
  void await_first_phase(int bucket);
  void publish(int bucket);
  void orthogonalise_whole(int bucket, const placement::MatrixBatch& batch);
  void orthogonalise_gathered(const plan::Operation& operation, const placement::MatrixBatch& batch,
                              const std::map<int, Place>& places);
  /// Matrices of one shape: where each lies and where its result goes, with old and new values of its per-row slots.
  struct Work {
    Work(const placement::MatrixBatch& batch, std::span<const int> some)
        : matrices(some),
          rows(batch.rows),
          columns(batch.columns),
          row_slots(batch.row_slots),
          updater(batch.updater) {}

    std::span<const int> matrices;  // of the bucket
    std::int64_t rows, columns;
    int row_slots, updater;
    std::vector<newton_schulz::Place> places;
    std::vector<const float*> row_values;
    std::vector<float*> new_row_values;
  };
  void run(const Work& work, const placement::Bucket& bucket);
  std::optional<std::int64_t> hand_over(const Work& work, int bucket, bool orthogonalise);
  std::span<float> buffer(const plan::Operation& operation, plan::BufferKind kind) const;
  /// Where the segment has this rank's rows of a matrix, and behind them the values of their per-row slots.
  struct OwnPlace {
    std::int64_t rows = 0, row_values = 0;
  };
  RowsAt<const float> own_rows(const placement::Matrix& matrix) const;
  RowsAt<float> own_result(const placement::Matrix& matrix);

  Workbench& bench_;
  const plan::StepPlan& plan_;
  std::vector<placement::BucketMatrices> matrices_;  // by bucket
  std::map<int, OwnPlace> own_place_;                // by parameter
  newton_schulz::Settings settings_;
  muon::TorchProducts products_;
  newton_schulz::Workspace workspace_;
};

}  // namespace ganymede::worker
