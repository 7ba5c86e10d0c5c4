#pragma once

#include <deque>
#include <optional>
#include <string>

namespace ganymede::launcher {

/// When the batch system ends the job of this run, and whether a step and a checkpoint still fit before. All times are
/// seconds; moments are of the wall clock, since 1970. Pure and not thread-safe.
class TimeLimit {
 public:
  /// The environment's variable in which Slurm says it.
  static constexpr const char* variable = "SLURM_JOB_END_TIME";

  /// `text`: value of the variable; null: there is none, and nothing is ever due. `margin`: kept free before the end.
  /// `saved_bytes`: what a checkpoint of this node holds about, for as long as none was written.
  TimeLimit(const char* text, double now, double margin, double saved_bytes);

  /// Why the variable is not followed: it is no time, or one that is over; empty: it is, or there is none.
  const std::string& warning() const { return warning_; }

  void step_took(double seconds);
  void save_took(double seconds);
  /// Why the run has to stop now; nothing: it has time, or no limit.
  std::optional<std::string> due(double now) const;

  static constexpr std::size_t steps_kept = 20, saves_kept = 5;
  static constexpr double assumed_bytes_a_second = 500e6;  // of a file system that no checkpoint was written to yet

 private:
  double step() const;
  double save() const;

  std::optional<double> end_;
  std::string warning_;
  double margin_, assumed_save_;
  std::deque<double> steps_, saves_;
};

/// Seconds since 1970.
double wall_seconds();

}  // namespace ganymede::launcher
