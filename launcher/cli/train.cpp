#include "launcher/cli/train.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "common/base/command_line.h"
#include "common/base/error.h"
#include "common/os/files.h"
#include "common/service/checkpoint_name.h"
#include "common/service/run_directory.h"
#include "launcher/cli/empty_words.h"
#include "launcher/cli/first_checks.h"
#include "launcher/cli/open_files.h"
#include "launcher/cli/recipe_paths.h"
#include "launcher/cli/siblings.h"
#include "launcher/coordinator/world_layout.h"

namespace ganymede::cli {
namespace {

namespace fs = std::filesystem;

struct TrainOptions {
  std::string recipe, run, from;
  std::vector<std::string> settings;
  std::int64_t steps = 0;
  std::string nodes, key;
  std::optional<int> given_node;  // --node
  int node = 0;                   // this one
};

std::string absolute(const std::string& path) { return fs::absolute(path).lexically_normal().string(); }

/// `--steps` says when to stop, not how fast the learning rate falls: a cosine that has no length of its own keeps that
/// of the recipe, so that stopping at a step and going on gives the curve of one run. The decay of a wsd schedule is
/// meant to end with the run, whatever its length.
void limit_steps(TrainOptions& options) {
  config::Config recipe = config::load(options.recipe, options.settings);
  if (recipe.optimizer.decay_steps == 0 && recipe.optimizer.schedule == config::Schedule::cosine)
    options.settings.push_back(fmt::format("optimizer.decay_steps={}", recipe.run.steps));
  options.settings.push_back(fmt::format("run.steps={}", options.steps));
}

/// The run directory of a node: that of node 0 is the run's own; the others work in a folder inside it, with sockets
/// and logs of their own and the run's checkpoints. So all may share one file system, or not.
std::string node_folder(const std::string& run, int node) {
  if (node == 0) return run;
  std::string folder = fmt::format("{}/node.{}", run, node), link = folder + "/" + service::checkpoint_folder;
  os::make_private_folder(folder);
  os::make_private_folder(fmt::format("{}/{}", run, service::checkpoint_folder));
  std::error_code error;
  fs::create_symlink(fmt::format("../{}", service::checkpoint_folder), link, error);
  if (error && !fs::is_directory(link)) fail("{} cannot be made: {}.", link, error.message());
  return folder;
}

/// What the launcher has to know of the other nodes.
void add_nodes(const TrainOptions& options, const config::Config& config, std::vector<std::string>& arguments) {
  if (options.nodes.empty()) {
    if (options.given_node.value_or(0) != 0 || !options.key.empty())
      fail_usage("--node and --key belong to --nodes host:port,host:port.");
    return;
  }
  auto nodes = coordinator::parse_nodes(options.nodes);
  // The same command on all nodes would make a coordinator of each.
  if (nodes.size() > 1 && !options.given_node)
    fail_usage(
        "--nodes names {} nodes, but not which of them this is: give each its own --node, 0 to {}; in a Slurm job "
        "--node \"$SLURM_NODEID\".",
        nodes.size(), nodes.size() - 1);
  coordinator::check_nodes(static_cast<int>(nodes.size()), config);
  if (options.node >= static_cast<int>(nodes.size()))
    fail_usage("--node {} is none of the {} nodes of --nodes: they are 0 to {}.", options.node, nodes.size(),
               nodes.size() - 1);
  arguments.insert(arguments.end(), {"--nodes", options.nodes, "--node", std::to_string(options.node)});
  if (!options.key.empty()) arguments.insert(arguments.end(), {"--key", absolute(options.key)});
}

const std::vector<std::pair<std::string, std::string>> words = {
    {"RECIPE", "name a recipe file"},
    {"--run", "name a run directory, or leave it out for runs/NAME of the recipe"},
    {"--from", "name a run or checkpoint directory, or a step of this run, or leave it out"},
    {"--nodes", "name all nodes, or leave it out for a run on this machine alone"},
    {"--key", "name the file with the run's key, or leave it out"}};

/// What --from names, whatever folder one is in. A checkpoint of the run itself is named by its step alone.
std::string from_of_launcher(const std::string& from, const std::string& run) {
  service::CheckpointName name = service::read_checkpoint_name(from);
  if (name.folder.empty()) return text_of(name);
  if (!fs::exists(name.folder)) fail_usage("--from {}: there is no such folder.", from);
  std::error_code none;
  if (name.step > 0 && fs::equivalent(name.folder, run, none)) return std::to_string(name.step);
  name.folder = absolute(name.folder);
  return text_of(name);
}

void train(TrainOptions options) {
  std::size_t said = options.settings.size();
  if (options.steps > 0) limit_steps(options);
  config::Config config = config::load(options.recipe, options.settings);
  check_dataset_named(config, options.recipe);
  auto nodes = 1 + static_cast<int>(std::count(options.nodes.begin(), options.nodes.end(), ','));
  require_open_files(raise_open_files(), (config.parallel.ranks + nodes - 1) / nodes);
  for (const std::string& setting : absolute_paths(config, fs::current_path().string()))
    options.settings.push_back(setting);
  std::string run = absolute(options.run.empty() ? default_run(options.recipe) : options.run);
  while (run.size() > 1 && run.ends_with('/')) run.pop_back();
  check_run_folder(run);
  std::vector<std::string> launcher = {sibling("ganymede-launcher"), "--recipe", absolute(options.recipe)};
  add_nodes(options, config, launcher);
  std::string from = from_of_launcher(options.from, run);
  check_with_services(absolute(options.recipe), options.settings);
  std::vector<std::string> arguments = {sibling("ganymede-keeper"), "--run", node_folder(run, options.node), "--"};
  arguments.insert(arguments.end(), launcher.begin(), launcher.end());
  if (!from.empty()) arguments.insert(arguments.end(), {"--from", from});
  for (std::size_t i = 0; i < options.settings.size(); ++i)
    arguments.insert(arguments.end(), {i < said ? "--set" : "--imply", options.settings[i]});
  become(arguments);
}

}  // namespace

void add_train(CLI::App& app) {
  auto options = std::make_shared<TrainOptions>();
  CLI::App* command = app.add_subcommand("train", "Start a run, or go on with the one in the run directory");
  command->add_option("RECIPE", options->recipe, "Recipe file: configs/recipes/*.toml")->required();
  command->add_option("--run", options->run, "Run directory (default: runs/NAME of the recipe)");
  command->add_option(
      "--from", options->from,
      "Run or checkpoint directory (DIR or DIR@STEP) that a new run starts from; STEP: an earlier checkpoint of this "
      "run to go back to");
  command->add_option("--set", options->settings, "Change a key of the recipe: --set optimizer.lr=3e-4")
      ->allow_extra_args(false);
  command
      ->add_option(
          "--steps", options->steps,
          "Stop at this step in total (default: run.steps); a cosine keeps the recipe's length, the decay of wsd "
          "ends there")
      ->check(command_line::between<std::int64_t>(1, 1'000'000'000'000));
  command->add_option("--nodes", options->nodes,
                      "Addresses of all nodes of a run over several: HOST:PORT,HOST,…; start one `train` on each");
  command
      ->add_option("--node", options->given_node,
                   "Index of this node in --nodes, needed with it; 0 is the coordinator; in a Slurm job $SLURM_NODEID")
      ->check(command_line::between<int>(0, 65535));
  command->add_option("--key", options->key,
                      "File with the run's key, a copy of RUN/ipc/coordinator.key of node 0; not needed where its run "
                      "directory is on a shared file system");
  command->callback([options, command] {
    refuse_empty(*command, words);
    options->node = options->given_node.value_or(0);
    train(*options);
  });
}

}  // namespace ganymede::cli
