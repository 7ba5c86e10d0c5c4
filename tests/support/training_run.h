#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/os/process.h"
#include "tests/support/temporary_folder.h"

namespace ganymede::test {

/// A real `ganymede train` on the tiny dataset, in a run directory of its own that is gone after the test. Every wait
/// has a deadline and throws Error with what the run printed.
class TrainingRun {
 public:
  /// `settings` ("key=value") come after those that make the run fast; `programs`: folder of the programs, standard:
  /// the build folder.
  explicit TrainingRun(std::vector<std::string> settings = {}, std::string programs = "");
  /// Kills what still runs.
  ~TrainingRun();

  std::string recipe;  // standard: configs/recipes/tiny.toml
  std::string data;    // standard: tiny_dataset()
  std::vector<std::pair<std::string, std::string>> environment;
  std::vector<std::string> prefix;  // put before the command

  /// Starts it, with further arguments of `ganymede train`. What it prints is kept, that of earlier starts as well.
  void start(const std::vector<std::string>& arguments = {});
  /// What `start` starts.
  os::Command command(const std::vector<std::string>& arguments);
  /// Waits for its end and returns the exit code.
  int wait(double seconds = 90);
  /// `start`, then `wait`.
  int train(const std::vector<std::string>& arguments = {}, double seconds = 90);

  void signal(int number);  // to the keeper, as a terminal would
  /// Kills every process of the run with SIGKILL, the keeper first, and waits until they are gone.
  void kill_everything();

  const std::string& folder() const { return folder_; }  // the run directory
  std::string output() const;
  bool running() const { return child_.has_value(); }

  std::vector<nlohmann::json> metrics() const;
  std::vector<double> losses() const;
  std::uint64_t last_step() const;
  void wait_for_step(std::uint64_t step, double seconds = 60) const;

  /// `ganymede ARGUMENTS…` of the same programs.
  struct Answer {
    int exit_code = -1;
    std::string output;
  };
  Answer ganymede(const std::vector<std::string>& arguments, double seconds = 60) const;
  /// `ganymede ctl RUN status --json`.
  nlohmann::json status() const;
  int pid_of(const std::string& service, int rank = 0) const;
  /// Waits until ctl says this state.
  void wait_for_state(const std::string& state, double seconds = 60) const;
  /// The state hash of the newest (or the given) checkpoint, as `checkpoint verify --hash` prints it.
  std::string state_hash(std::optional<std::uint64_t> step = std::nullopt) const;

  /// Processes of this run that still live.
  std::vector<int> leftovers() const;

 private:
  [[noreturn]] void fail_with_output(const std::string& what) const;

  TemporaryFolder home_;
  std::string folder_, programs_, output_file_;
  std::vector<std::string> settings_;
  std::optional<os::Child> child_;
};

}  // namespace ganymede::test
