#include "launcher/cli/plan.h"

#include <filesystem>

#include "common/base/command_line.h"
#include "common/base/error.h"
#include "common/os/files.h"
#include "launcher/cli/empty_words.h"
#include "launcher/cli/plan_parameters.h"
#include "launcher/cli/plan_report.h"
#include "launcher/cli/plan_svg.h"
#include "launcher/cli/plan_text.h"
#include "launcher/cli/recipe_paths.h"

namespace ganymede::cli {
namespace {

namespace fs = std::filesystem;

struct PlanOptions {
  PlanRequest request;
  std::string svg, other;                   // files; none: empty
  std::vector<std::string> other_settings;  // "key=value"
  bool print = false, json = false, parameters = false;
};

void write_svg(const PlanReport& report, const std::string& file) {
  fs::path folder = fs::path(file).parent_path();
  if (!folder.empty() && !fs::is_directory(folder))
    fail_usage("--svg {}: there is no folder {}.", file, folder.string());
  if (fs::is_directory(file)) fail_usage("--svg {}: that is a folder.", file);
  os::write_file_atomically(file, plan_svg(report));
}

void show_plan(const PlanOptions& options) {
  if (!options.svg.empty() && options.request.hardware.empty() && options.request.measured.empty()) {
    fail_usage("--svg {}: a drawing needs durations; give --hardware FILE or --measured FILE.", options.svg);
  }
  Durations durations = read_durations(options.request);
  PlanReport report = make_report(options.request, durations);
  if (!options.svg.empty()) write_svg(report, options.svg);
  if (options.json) {
    fmt::print("{}", plan_json(report));
    return;
  }
  if (!options.other.empty()) {
    PlanRequest second = options.request;
    second.recipe = options.other;
    second.settings = options.other_settings;
    fmt::print("{}", difference(report, make_report(second, durations), options.print));
    return;
  }
  if (options.parameters) {
    fmt::print("{}", parameter_table(report));
    return;
  }
  if (options.print) fmt::print("{}\n", operation_table(report));
  fmt::print("{}", summary(report));
}

const std::vector<std::pair<std::string, std::string>> words = {
    {"RECIPE", "name a recipe file"},
    {"--hardware", "name a file of configs/hardware, or leave it out"},
    {"--measured", "name a run's operations.RANK.json, or leave it out"},
    {"--svg", "name the file to draw into, or leave it out"},
    {"--diff", "name the other recipe, or leave it out"}};

}  // namespace

void add_plan(CLI::App& app) {
  auto options = std::make_shared<PlanOptions>();
  PlanRequest& request = options->request;
  CLI::App* command = app.add_subcommand("plan", "Show what a step does, how long it would take, what it needs");
  command->add_option("RECIPE", request.recipe, "Recipe file, or a run directory: that run's configuration")
      ->required();
  command->add_option("--set", request.settings, "Change a key of RECIPE: --set offload.fraction=0.5")
      ->allow_extra_args(false);
  command->add_option("--rank", request.rank, "Whose plan")
      ->check(command_line::between(0, 65535))
      ->capture_default_str();
  auto* hardware = command->add_option("--hardware", request.hardware,
                                       "Take durations from a machine's numbers: configs/hardware/*.toml");
  command->add_option("--measured", request.measured, "Take durations from a run: RUN/operations.RANK.json")
      ->excludes(hardware);
  command->add_flag("--print", options->print, "Print a line for each operation; with --diff: for each that differs");
  command->add_option("--svg", options->svg,
                      "Draw lanes over predicted time into a file; needs --hardware or --measured");
  auto* other = command->add_option("--diff", options->other,
                                    "Compare with the plan of another recipe, or of the same with other keys");
  command->add_option("--diff-set", options->other_settings, "Change a key of the recipe of --diff, as --set of RECIPE")
      ->allow_extra_args(false)
      ->needs(other);
  auto* json = command->add_flag("--json", options->json, "Print all of it as JSON")->excludes(other);
  command->add_flag("--parameters", options->parameters, "List the model's parameters and who updates them instead")
      ->excludes(other)
      ->excludes(json);
  command->callback([options, command] {
    refuse_empty(*command, words);
    options->request.recipe = recipe_file(options->request.recipe);
    if (!options->other.empty()) options->other = recipe_file(options->other);
    show_plan(*options);
  });
}

}  // namespace ganymede::cli
