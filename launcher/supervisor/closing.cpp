#include "launcher/supervisor/closing.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <set>

#include "common/base/error.h"
#include "common/base/text.h"
#include "common/os/machine.h"
#include "common/service/checkpoint_name.h"
#include "common/service/run_directory.h"
#include "launcher/supervisor/child_program.h"
#include "launcher/supervisor/service_command.h"

namespace ganymede::launcher {
namespace {

constexpr double sample_seconds = 600;

std::string key_of(const std::string& setting) { return setting.substr(0, setting.find('=')); }

/// Whether `ganymede train` may have put it behind the user's settings: a path, or a list of paths, that is absolute.
bool is_absolute_path(const std::string& setting) {
  std::string value = setting.substr(std::min(setting.size(), setting.find('=') + 1));
  return value.starts_with("\"/") || value.starts_with("[\"/");
}

/// Of the settings of one key, the last one that the user gave: `ganymede train` puts the path in force, made absolute,
/// behind the user's own. Only the last one is in force.
std::optional<std::size_t> last_of_the_user(const std::vector<std::string>& settings, const std::string& key) {
  const std::set<std::string> paths = {"data.path", "data.sources", "data.tokenizer", "optimizer.plugin_folder"};
  std::vector<std::size_t> given;
  for (std::size_t i = 0; i < settings.size(); ++i)
    if (key_of(settings[i]) == key) given.push_back(i);
  if (!given.empty() && paths.contains(key) && is_absolute_path(settings[given.back()])) given.pop_back();
  return given.empty() ? std::nullopt : std::optional(given.back());
}

/// What the user set, the last of each key; without the steps, which the command names itself.
std::string settings_of_the_user(const std::vector<std::string>& settings) {
  std::string text;
  for (std::size_t i = 0; i < settings.size(); ++i) {
    std::string key = key_of(settings[i]);
    if (key == "run.steps" || last_of_the_user(settings, key) != i) continue;
    text += " --set " + shell_word(settings[i]);
  }
  return text;
}

/// A run without a checkpoint of its own begins again, from where it began.
std::string train_command(const Options& options, const std::string& ganymede, std::int64_t steps, bool has_own) {
  bool stays = !has_own && !options.from.empty() && !service::read_checkpoint_name(options.from).own();
  std::string from = !stays ? "" : " --from " + shell_word(shortened(options.from));
  std::string nodes;
  for (const auto& node : options.nodes) nodes += (nodes.empty() ? " --node 0 --nodes " : ",") + node.text();
  return fmt::format("{} train {} --run {}{} --steps {}{}{}", ganymede, shell_word(shortened(options.recipe)),
                     shell_word(shortened(options.run)), from, steps, settings_of_the_user(options.settings), nodes);
}

}  // namespace

std::string shell_word(const std::string& text) {
  constexpr const char* plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,%@";
  if (!text.empty() && text.find_first_not_of(plain) == std::string::npos) return text;
  std::string word = "'";
  for (char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

std::string shortened(const std::string& path) {
  const char* folder = std::getenv("PWD");
  if (!folder || *folder != '/') return path;
  std::string prefix = std::string(folder) + (std::string(folder).ends_with('/') ? "" : "/");
  return path.starts_with(prefix) && path.size() > prefix.size() ? path.substr(prefix.size()) : path;
}

std::uint64_t more_steps(std::uint64_t step, std::uint64_t recipe_steps) {
  return recipe_steps > step ? recipe_steps : 2 * step;
}

std::uint64_t steps_of_recipe(const Options& options) {
  std::vector<std::string> settings = options.settings;
  std::erase_if(settings, [](const std::string& setting) { return key_of(setting) == "run.steps"; });
  try {
    return static_cast<std::uint64_t>(config::load(options.recipe, settings).run.steps);
  } catch (const Error&) {
    return 0;  // it needs --steps to be valid
  }
}

std::string go_on_command(const RunSummary& summary, const config::Config& config, const Options& options,
                          const std::string& programs) {
  bool done = std::max(summary.step, summary.load_step) >= summary.steps;
  auto more = static_cast<std::int64_t>(more_steps(summary.steps, summary.recipe_steps));
  return train_command(options, shell_word(shortened(programs + "/ganymede")), done ? more : config.run.steps,
                       summary.checkpoint.has_value());
}

std::string closing_lines(const RunSummary& summary, const config::Config& config, const Options& options,
                          const std::string& programs) {
  std::uint64_t step = std::max(summary.step, summary.load_step);
  bool done = step >= summary.steps;
  std::string run = shell_word(shortened(options.run)), ganymede = shell_word(shortened(programs + "/ganymede"));
  std::string text = fmt::format("{} at step {}/{} after {}", done ? "done" : "stopped", step, summary.steps,
                                 human_seconds(summary.seconds));
  if (summary.step > 0) text += fmt::format(": loss {:.4f}", summary.loss);
  if (summary.validation_loss) text += fmt::format(", validation loss {:.4f}", *summary.validation_loss);
  std::string go_on = go_on_command(summary, config, options, programs);
  if (summary.checkpoint)
    text += fmt::format("\ncheckpoint: step {} in {}/{}", *summary.checkpoint, shortened(options.run),
                        service::checkpoint_folder);
  if (!done && !summary.checkpoint && summary.step > summary.load_step)
    text += fmt::format("\nno checkpoint was written: it begins again at step {}", summary.load_step);
  if (!done) text += "\ngo on with: " + go_on;
  if (!summary.checkpoint) return text;
  std::string prompt = config.sample.prompt.empty() ? "The " : config.sample.prompt;
  text += fmt::format("\nnext:\n  {} generate {} --prompt {}\n  {} ctl {} status", ganymede, run, shell_word(prompt),
                      ganymede, run);
  return done ? text + "\n  " + go_on : text;
}

std::string checkpoint_failure(std::uint64_t step, int rank, const std::string& text, const std::string& run,
                               bool last) {
  std::string name = fmt::format("checkpoint of step {} ", step);
  std::string fault = text.find(name) == std::string::npos ? fmt::format("The {}failed: {}", name, text) : text;
  return fmt::format("{} It is the part of rank {}, in {}/{}; {}.", fault, rank, shortened(run),
                     service::checkpoint_folder,
                     last ? "mend this (make room), and the same command goes on from the checkpoint before"
                          : "training goes on, and the next checkpoint tries again");
}

void show_sample(const config::Config& config, const Options& options, const std::string& programs, Signals& signals,
                 Terminal& terminal) {
  if (config.sample.prompt.empty()) return;
  os::Command command;
  command.arguments = {programs + "/ganymede-worker",
                       "generate",
                       options.run,
                       "--prompt",
                       config.sample.prompt,
                       "--tokens",
                       std::to_string(config.sample.tokens),
                       "--temperature",
                       fmt::format("{}", config.sample.temperature)};
  command.environment = worker_environment(config, os::inspect_machine());
  terminal.line(fmt::format("sample of {} tokens:", config.sample.tokens));
  // A program that did not end by itself has left its line without an end.
  try {
    os::Ending ending = run_child(command, signals, Deadline::after_seconds(sample_seconds));
    if (ending.signal != 0) terminal.line(fmt::format("\nthe sample ends here: {}", ending.describe()));
    if (ending.signal == 0 && ending.exit_code != 0)
      terminal.line(fmt::format("no sample could be generated ({})", ending.describe()));
  } catch (const Error& error) {
    bool stopped = error.code() == ExitCode::can_go_on;
    terminal.line(fmt::format("\nthe sample ends here: {}", stopped ? "stopped by a signal" : error.what()));
  }
}

}  // namespace ganymede::launcher
