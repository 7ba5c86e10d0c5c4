#include "services/worker/engine/inference/commands.h"

#include <CLI/CLI.hpp>

#include "common/base/command_line.h"
#include "common/base/error.h"
#include "common/base/run_command.h"
#include "services/worker/engine/inference/evaluate.h"
#include "services/worker/engine/inference/generate.h"

namespace ganymede::worker {
namespace {

void add_generate(CLI::App& app, GenerateOptions& options) {
  CLI::App* command = app.add_subcommand("generate", "Continue a text with the model of a checkpoint");
  command->add_option("RUN", options.folder, "Run directory or checkpoint folder")->required();
  command->add_option("--prompt", options.prompt, "The text to continue")->required();
  command->add_option("--step", options.step, "Step of the checkpoint (default: the newest)");
  command->add_option("--data", options.dataset, "Dataset whose tokenizer is used (default: the run's own)");
  command->add_option("--tokens", options.tokens, "How many tokens")
      ->check(command_line::between(std::int64_t{0}, std::int64_t{1} << 30))
      ->capture_default_str();
  command->add_option("--temperature", options.sampling.temperature, "0: always the most likely token")
      ->check(command_line::between(0.0, 100.0))
      ->capture_default_str();
  command
      ->add_option("--top-p", options.sampling.top_p, "Draw from the likeliest tokens with this probability together")
      ->check(command_line::between(0.0, 1.0))
      ->capture_default_str();
  command->add_option("--seed", options.sampling.seed, "The same seed draws the same text")->capture_default_str();
  command->add_flag("--json", options.json, "Print JSON when all is drawn");
  command->callback([&options] { generate(options); });
}

void add_eval(CLI::App& app, EvaluateOptions& options) {
  CLI::App* command = app.add_subcommand("eval", "Loss of a checkpoint's model on a dataset");
  command->add_option("RUN", options.folder, "Run directory or checkpoint folder")->required();
  command->add_option("--data", options.dataset, "Folder of the dataset")->required();
  command->add_option("--step", options.step, "Step of the checkpoint (default: the newest)");
  command->add_option("--split", options.split, "validation or train")
      ->check(CLI::IsMember({"validation", "train"}))
      ->capture_default_str();
  command->add_option("--rows", options.rows, "How many rows; fewer if there are no more")
      ->check(command_line::between(std::int64_t{1}, std::int64_t{1} << 30))
      ->capture_default_str();
  command->add_flag("--json", options.json, "Print JSON");
  command->callback([&options] { evaluate(options); });
}

int parse(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
    return static_cast<int>(ExitCode::done);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    command_line::refuse(app, error);
  }
}

}  // namespace

int inference_program(int argc, char** argv) {
  CLI::App app("What a checkpoint's model makes of text", "ganymede");
  app.require_subcommand(1);
  GenerateOptions generate_options;
  EvaluateOptions evaluate_options;
  add_generate(app, generate_options);
  add_eval(app, evaluate_options);
  return run_command("ganymede-worker: ", [&] { return parse(app, argc, argv); });
}

}  // namespace ganymede::worker
