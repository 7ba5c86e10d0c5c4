#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/config/config.h"
#include "launcher/supervisor/options.h"
#include "launcher/supervisor/signals.h"
#include "launcher/supervisor/terminal.h"

namespace ganymede::launcher {

/// What the last lines of a run are made from.
struct RunSummary {
  std::uint64_t step = 0, steps = 0;  // the last one that this run has done; 0: none
  std::uint64_t load_step = 0;        // of the checkpoint that this launch began with, perhaps another run's
  double loss = 0;                    // of `step`
  std::optional<double> validation_loss = {};
  std::optional<std::uint64_t> checkpoint = {};  // step of the newest one
  double seconds = 0;                            // of this launch
  std::uint64_t recipe_steps = 0;                // run.steps of the recipe itself; 0: not known
};

/// How a run ended, where its checkpoint is, and three commands that one would try next. Lines without an end.
std::string closing_lines(const RunSummary& summary, const config::Config& config, const Options& options,
                          const std::string& programs);

/// The command that goes on with the run: to its end, or, where all is done, with more steps.
std::string go_on_command(const RunSummary& summary, const config::Config& config, const Options& options,
                          const std::string& programs);

/// The steps that a run which has done `step` is proposed to go on to: those of the recipe itself where they are more.
std::uint64_t more_steps(std::uint64_t step, std::uint64_t recipe_steps);

/// run.steps that the run has without a word on the command line about it; 0 when that cannot be read.
std::uint64_t steps_of_recipe(const Options& options);

/// What is said of a checkpoint that `rank` could not write into the run's folder `run`, because of `text`; `last`: the
/// run ends without it.
std::string checkpoint_failure(std::uint64_t step, int rank, const std::string& text, const std::string& run,
                               bool last);

/// Continues sample.prompt with the trained model (`ganymede-worker generate`), which shows it as it grows. A sample
/// that fails is reported in one line and is no failure of the run.
void show_sample(const config::Config& config, const Options& options, const std::string& programs, Signals& signals,
                 Terminal& terminal);

/// `path` relative to the folder in which the person works (the environment's PWD) if it lies inside, else as it is.
std::string shortened(const std::string& path);

/// `text` as one word of a POSIX shell.
std::string shell_word(const std::string& text);

}  // namespace ganymede::launcher
