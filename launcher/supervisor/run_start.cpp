#include "launcher/supervisor/run_start.h"

#include <filesystem>

#include "common/base/error.h"
#include "common/model_spec/model_hash.h"
#include "common/os/files.h"
#include "common/service/checkpoint_name.h"
#include "launcher/supervisor/closing.h"

namespace ganymede::launcher {
namespace {

namespace fs = std::filesystem;

/// `step`: 0 for the newest.
service::Manifest chosen(const service::Manifests& manifests, const std::string& folder, std::uint64_t step,
                         Terminal& terminal) {
  service::Manifest manifest = service::choose_manifest(manifests, folder, step);
  if (step > 0) return manifest;
  for (const service::DamagedManifest& one : manifests.passed_over())
    terminal.line(fmt::format("the checkpoint of step {} is passed over: {}", one.step, one.reason));
  return manifest;
}

/// A configuration is read from a file, for it may name others.
config::Config configuration_of(const service::Manifest& manifest) {
  std::string file = fmt::format("{}/checkpoint.toml", service::log_folder);
  os::write_file_atomically(file, manifest.config);
  try {
    config::Config config = config::load(file, {});
    fs::remove(file);
    return config;
  } catch (const Error& error) {
    fs::remove(file);
    fail_usage("The configuration in {}/{} cannot be read: {} Put the manifest back from a copy, or remove it.",
               service::checkpoint_folder, service::manifest_name(manifest.step), error.what());
  }
}

std::string name_of(const Start& start, const std::string& run) {
  return start.folder.empty() ? fmt::format("the run in {}", run) : fmt::format("{} (--from)", start.folder);
}

void check_steps(const Start& start, const config::Config& config, const std::string& run, std::uint64_t recipe_steps) {
  auto steps = static_cast<std::uint64_t>(config.run.steps);
  bool own = start.folder.empty();
  if (start.step() < steps || (own && start.step() == steps)) return;
  fail_usage(
      "Key 'run.steps' is {}, but the checkpoint of {} is of step {} already: go on with more, for example --steps "
      "{}{}.",
      steps, name_of(start, run), start.step(), more_steps(start.step(), recipe_steps),
      own ? ", or begin a new run with another --run" : "");
}

}  // namespace

Start find_start(const service::Manifests& own, const std::string& from, Terminal& terminal) {
  service::CheckpointName name = service::read_checkpoint_name(from);
  bool has_own = !own.intact.empty() || !own.damaged.empty();
  if (has_own) {
    Start start{"", chosen(own, service::checkpoint_folder, 0, terminal)};
    if (!from.empty() && !name.own())
      terminal.line(fmt::format("--from {} is not used: this run goes on from its own checkpoint of step {}",
                                shortened(from), start.step()));
    return start;
  }
  if (name.folder.empty()) return {};
  std::string folder = service::find_checkpoints(name.folder);
  return {fs::absolute(folder).string(), chosen(service::find_manifests(folder), folder, name.step, terminal)};
}

std::optional<config::Config> configuration_before(const service::Manifests& own, const std::string& run) {
  std::optional<config::Config> before;
  if (fs::exists(service::config_file)) {
    try {
      before = config::load(service::config_file, {});
    } catch (const Error& error) {
      fail_usage("{}: {} It is the configuration that this run began with; remove the file to go on with the recipe's.",
                 run, error.what());
    }
  }
  // It cannot be edited by mistake, or removed.
  if (!own.intact.empty()) before = configuration_of(own.intact.back());
  return before;
}

void check_start(const Start& start, const config::Config& config, const std::string& run, std::uint64_t recipe_steps) {
  if (!start.manifest) return;
  check_steps(start, config, run, recipe_steps);
  const service::Manifest& manifest = *start.manifest;
  if (manifest.optimizer != config.optimizer.name)
    fail_usage(
        "Key 'optimizer.name' is {}, but the checkpoint of step {} of {} was made with optimizer {}: go on with that "
        "one; `ganymede ctl {} swap-optimizer {}` changes the optimizer of a running job.",
        config.optimizer.name, manifest.step, name_of(start, run), manifest.optimizer, run, config.optimizer.name);
  if (manifest.model_hash != model_spec::model_hash(model_spec::parameters(config.model)))
    fail_usage(
        "The checkpoint of step {} of {} is of another model than the configuration: give the keys under [model] the "
        "values that it was made with.",
        manifest.step, name_of(start, run));
}

void check_dataset(const Start& start, const config::Config& config, const std::string& dataset, const std::string& run,
                   Terminal& terminal) {
  if (!start.manifest || start.manifest->dataset == dataset) return;
  const service::Manifest& manifest = *start.manifest;
  if (!start.folder.empty())
    return terminal.line(fmt::format("the dataset {} is another one than that of the checkpoint of step {} of {}",
                                     config.data.path, manifest.step, name_of(start, run)));
  fail_usage(
      "Dataset {} (data.path) has another content than the one that the checkpoint of step {} of the run in {} was "
      "trained on (hash {} now, {} then): put the old dataset back, or begin a new run with another --run, which may "
      "start --from {}.",
      config.data.path, manifest.step, run, dataset, manifest.dataset, run);
}

}  // namespace ganymede::launcher
