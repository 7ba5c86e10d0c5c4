#include "launcher/cli/train.h"

#include <filesystem>

#include "common/base/command_line.h"
#include "common/base/error.h"
#include "launcher/cli/recipe_paths.h"
#include "launcher/cli/siblings.h"

namespace ganymede::cli {
namespace {

namespace fs = std::filesystem;

struct TrainOptions {
  std::string recipe, run, from;
  std::vector<std::string> settings;
  std::int64_t steps = 0;
};

std::string absolute(const std::string& path) { return fs::absolute(path).lexically_normal().string(); }

/// `--steps` says when to stop, not how fast the learning rate falls: a schedule that has no length of its own keeps
/// that of the recipe, so that stopping at a step and going on gives the curve of one run.
void limit_steps(TrainOptions& options) {
  config::Config recipe = config::load(options.recipe, options.settings);
  if (recipe.optimizer.decay_steps == 0)
    options.settings.push_back(fmt::format("optimizer.decay_steps={}", recipe.run.steps));
  options.settings.push_back(fmt::format("run.steps={}", options.steps));
}

void train(TrainOptions options) {
  if (options.steps > 0) limit_steps(options);
  config::Config config = config::load(options.recipe, options.settings);
  for (const std::string& setting : absolute_paths(config, fs::current_path().string()))
    options.settings.push_back(setting);
  std::string run = absolute(options.run.empty() ? default_run(options.recipe) : options.run);
  while (run.size() > 1 && run.ends_with('/')) run.pop_back();
  std::vector<std::string> arguments = {
      sibling("ganymede-keeper"), "--run", run, "--", sibling("ganymede-launcher"), "--recipe",
      absolute(options.recipe)};
  if (!options.from.empty()) {
    if (!fs::exists(options.from)) fail_usage("--from {}: there is no such folder.", options.from);
    arguments.insert(arguments.end(), {"--from", absolute(options.from)});
  }
  for (const std::string& setting : options.settings) arguments.insert(arguments.end(), {"--set", setting});
  become(arguments);
}

}  // namespace

void add_train(CLI::App& app) {
  auto options = std::make_shared<TrainOptions>();
  CLI::App* command = app.add_subcommand("train", "start a run, or go on with the one in the run directory");
  command->add_option("RECIPE", options->recipe, "recipe file (configs/recipes/*.toml)")->required();
  command->add_option("--run", options->run, "run directory; standard: runs/<name of the recipe>");
  command->add_option("--from", options->from, "run or checkpoint directory that a new run starts from");
  command->add_option("--set", options->settings, "a key of the configuration: --set optimizer.lr=3e-4")
      ->allow_extra_args(false);
  command->add_option("--steps", options->steps, "stop at this step in total; the schedule stays that of the recipe")
      ->check(command_line::between<std::int64_t>(1, 1'000'000'000'000));
  command->callback([options] { train(*options); });
}

}  // namespace ganymede::cli
