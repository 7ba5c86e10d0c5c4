#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/metrics/metrics_file.h"
#include "common/step_protocol/control_block.h"
#include "launcher/coordinator/restart_book.h"
#include "launcher/supervisor/skips.h"
#include "launcher/supervisor/terminal.h"
#include "schemas/messages_generated.h"

namespace ganymede::launcher {

/// What the launcher knows beside a worker's report.
struct StepSurroundings {
  std::uint64_t generation = 0;
  int restarts = 0;                                          // of services, since this launcher began
  double host_used = 0, host_predicted = 0, host_limit = 0;  // bytes
};

/// Makes metrics.jsonl and the step lines from the reports of the worker of rank 0. A step that is reported again is
/// written once. Not thread-safe.
class StepLog {
 public:
  /// Opens the metrics file; lines of steps after `decided` go first (they are computed again). Throws Error.
  StepLog(const std::string& path, std::uint64_t decided, std::uint64_t steps, Terminal& terminal);
  ~StepLog();  // shows what still waits for its step
  StepLog(const StepLog&) = delete;
  StepLog& operator=(const StepLog&) = delete;

  /// A line that the file cannot take (a full disk) waits in memory, with those after it; each step tries again. Throws
  /// Error when more than `most_unwritten` wait.
  void take(const fbs::StepReport& report, const StepSurroundings& around);

  /// The line of a step whose report was lost, from its decision record; without times.
  void take_record(const step_protocol::DecisionRecord& record, const StepSurroundings& around);

  /// The line of a step of which nothing is known any more: its loss is null, and "lost" is true.
  void take_gap(std::uint64_t step, const StepSurroundings& around);

  /// A restart that is over: it stands in the line of the next step that is written.
  void take_restart(const coordinator::RestartEvent& event) { over_.push_back(event); }

  /// A line that comes after that of a step: now, or once the step is here (reports wait in the worker for a while).
  void line_after(std::uint64_t step, const std::string& line);

  /// Why lines wait in memory; empty: all are written.
  std::string trouble() const { return unwritten_.empty() ? "" : trouble_; }
  /// Tries once more to write them. False when some still wait.
  bool write_waiting();

  static constexpr std::size_t most_unwritten = 10'000;  // lines, of some kilobytes each

  std::uint64_t last_step() const { return last_step_; }
  double last_loss() const { return last_loss_; }  // NaN: no step is done, or it was not finite
  double tokens_per_second() const { return tokens_per_second_; }
  /// Of the last validation in this launch.
  std::optional<double> validation_loss() const { return validation_loss_; }
  /// Mean loss of one of the last steps; NaN when it is not known.
  double loss_of(std::uint64_t step) const;

 private:
  void write(const fbs::StepReport& report, const StepSurroundings& around);
  void show(const fbs::StepReport& report, const StepSurroundings& around);
  void remember(const fbs::StepReport& report);
  void append(metrics::Record& line, const StepSurroundings& around);
  void show_waiting(std::uint64_t up_to);

  metrics::MetricsFile file_;
  std::deque<metrics::Record> unwritten_;  // lines, in order
  std::string trouble_;                    // why the first of them could not be written
  std::uint64_t steps_;
  Terminal& terminal_;
  int earlier_restarts_ = 0;
  Skips skips_;
  std::uint64_t last_step_ = 0;
  double last_loss_ = std::numeric_limits<double>::quiet_NaN(), tokens_per_second_ = 0;
  std::optional<double> validation_loss_;
  std::map<std::uint64_t, double> losses_;             // of the last steps
  std::multimap<std::uint64_t, std::string> waiting_;  // lines, by the step that they come after
  std::vector<coordinator::RestartEvent> over_;        // restarts
  double reported_at_ = 0;                             // seconds, of the last report; 0: none yet
  double seconds_a_step_ = 0;                          // smoothed, everything between two reports included
  double shown_at_ = 0;                                // seconds, of the last permanent line
};

}  // namespace ganymede::launcher
