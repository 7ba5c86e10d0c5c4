#pragma once

#include <string>
#include <vector>

#include "common/plan/executor.h"

/// Durations that a run has measured, as a file between runs: RUN/operations.<rank>.json, one object
///   {"format": 2, "rank", "ranks", "steps",
///    "operations": [{"kind", "part", "layer", "bucket", "row", "count", "ms", "median_ms", "mean_ms", "least_ms"}]}
/// with `layer` −1 for the embedding and the number of layers for the head, `bucket` by name ("" for none), `row` −1
/// for what is not of one row. Durations are without waits for batches, updates and other lanes; `ms` is the one that
/// a plan takes: the median of the `count` last steps, of an operation with a collective in it the least, because the
/// others contain waits for ranks that came late.
namespace ganymede::plan {

/// Its name in the run directory, by rank.
constexpr const char* operations_file = "operations.{}.json";

/// Collects the spans of a plan's operations, step by step; the last `remembered` of them count. One thread.
class OperationMeter {
 public:
  /// `plan` must outlive it.
  explicit OperationMeter(const StepPlan& plan);
  void add(const std::vector<Span>& spans);
  static constexpr std::size_t remembered = 1000;
  int steps() const { return steps_; }
  /// Milliseconds by operation: what the file calls `ms`.
  std::vector<double> durations() const;
  std::string json(const placement::Placement& placement) const;

 private:
  const StepPlan& plan_;
  int steps_ = 0;
  std::vector<std::vector<double>> samples_;  // by operation, of the last steps in no order
  std::vector<bool> collective_;
};

/// A file of measurements.
class MeasuredOperations {
 public:
  /// Throws Error(usage) naming file and fault: not there, no JSON, a field missing or of a wrong type.
  explicit MeasuredOperations(const std::string& file);

  /// Milliseconds by operation of a plan, which need not be the measured one: an operation that was not measured takes
  /// the median of those of its kind, layer type and bucket kind. Throws Error(usage) when there is none of its kind.
  std::vector<double> durations(const StepPlan& plan, const config::Config& config,
                                const placement::Placement& placement) const;
  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  int steps() const { return steps_; }

 private:
  struct Entry {
    std::string kind, bucket;  // kind with the part: "forward experts"
    int layer = -1, row = -1;
    double ms = 0;
  };
  std::string file_;
  int rank_ = 0, ranks_ = 1, steps_ = 0;
  std::vector<Entry> entries_;
};

}  // namespace ganymede::plan
