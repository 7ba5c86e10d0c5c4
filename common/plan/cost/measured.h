#pragma once

#include <string>
#include <vector>

#include "common/plan/executor.h"

/// Durations that a run has measured, as a file between runs: RUN/operations.<rank>.json, one object
///   {"format": 1, "rank", "ranks", "steps", "operations": [{"kind", "layer", "bucket", "row", "ms"}]}
/// with `layer` −1 for the embedding and the number of layers for the head, `bucket` by name ("" for none), `row` −1
/// for what is not of one row, and `ms` without waits for batches, updates and other lanes.
namespace ganymede::plan {

/// Its name in the run directory, by rank.
constexpr const char* operations_file = "operations.{}.json";

/// Collects the spans of a plan's operations, step by step. One thread.
class OperationMeter {
 public:
  /// `plan` must outlive it.
  explicit OperationMeter(const StepPlan& plan);
  void add(const std::vector<Span>& spans);
  int steps() const { return steps_; }
  /// By operation: the mean of its steps; of an operation with a collective in it the least, because the others
  /// contain waits for ranks that came late.
  std::vector<double> durations() const;
  std::string json(const placement::Placement& placement) const;

 private:
  const StepPlan& plan_;
  int steps_ = 0;
  std::vector<double> sum_, least_;
  std::vector<bool> collective_;
};

/// A file of measurements.
class MeasuredOperations {
 public:
  /// Throws Error(usage) naming file and fault: not there, no JSON, a field missing or of a wrong type.
  explicit MeasuredOperations(const std::string& file);

  /// Milliseconds by operation of a plan, which need not be the measured one: an operation that was not measured takes
  /// the mean of those of its kind, layer type and bucket kind. Throws Error(usage) when there is none of its kind.
  std::vector<double> durations(const StepPlan& plan, const config::Config& config,
                                const placement::Placement& placement) const;
  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  int steps() const { return steps_; }

 private:
  struct Entry {
    std::string kind, bucket;
    int layer = -1, row = -1;
    double ms = 0;
  };
  std::string file_;
  int rank_ = 0, ranks_ = 1, steps_ = 0;
  std::vector<Entry> entries_;
};

}  // namespace ganymede::plan
