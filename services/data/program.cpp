#include "services/data/program.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <limits>

#include "common/base/command_line.h"
#include "common/base/error.h"
#include "common/base/run_command.h"
#include "common/service/run_directory.h"
#include "services/data/commands.h"
#include "services/data/data_service.h"

namespace ganymede::data {
namespace {

constexpr const char* service_flags[] = {"--run", "--rank", "--protocol"};

void add_pack(CLI::App& app) {
  auto* command = app.add_subcommand("pack", "Pack text into a dataset: tokens in rows of one length");
  auto options = std::make_shared<PackOptions>();
  auto json = std::make_shared<bool>(false);
  auto config = std::make_shared<std::string>();
  auto vocabulary = std::make_shared<int>(0);
  options->extensions = {".txt", ".md", ".py", ".jsonl"};
  command->add_option("sources", options->sources,
                      "Text files, .jsonl files ({\"text\": …} a line), folders, patterns");
  command->add_option("--to", options->to, "Folder to make");
  command->add_option("--config", *config, "Take everything from the data.* keys of a run configuration");
  auto* model = command->add_option("--tokenizer", options->tokenizer, "bytes, or a SentencePiece model file");
  command->add_option("--train-tokenizer", *vocabulary, "Train a SentencePiece model of this size on the sources")
      ->excludes(model)
      ->check(command_line::between(300, 1'000'000));
  command->add_option("--seq-len", options->seq_len, "Tokens a row")
      ->check(command_line::between(2, 1 << 24))
      ->capture_default_str();
  command->add_option("--extensions", options->extensions, "Endings of the files taken from folders")
      ->delimiter(',')
      ->capture_default_str();
  command
      ->add_option("--max-bytes", options->max_bytes,
                   "Text to take at most, whole documents, for example 64MB (default: 0, all of it)")
      ->transform(CLI::AsSizeValue(false))
      ->check(command_line::between(std::int64_t{0}, std::numeric_limits<std::int64_t>::max()));
  command->add_option("--validation-fraction", options->validation_fraction, "Share of documents that is held out")
      ->check(command_line::between(0.0, 0.5))
      ->capture_default_str();
  command->add_option("--seed", options->seed, "Of the order of the documents")->capture_default_str();
  command->add_option("--rows-per-step", options->rows_per_step, "Refuse when there are fewer training rows than that");
  command->add_flag("--json", *json, "Print the summary as JSON");
  command->callback([=] {
    if (!config->empty()) {
      if (!options->sources.empty() || !options->to.empty())
        fail_usage("--config names sources and folder itself: leave SOURCE and --to away.");
      return pack_configured(*config, *json);
    }
    if (options->to.empty()) fail_usage("--to DATASET is needed: the folder to make.");
    if (*vocabulary > 0) options->tokenizer = fmt::format("train:{}", *vocabulary);
    pack_command(*options, *json);
  });
}

void add_check(CLI::App& app) {
  auto* command = app.add_subcommand("check", "Check that the dataset of a recipe, if it is packed, fits the recipe");
  auto recipe = std::make_shared<std::string>();
  auto settings = std::make_shared<std::vector<std::string>>();
  command->add_option("RECIPE", *recipe, "Recipe file")->required();
  command->add_option("--set", *settings, "Change a key of the recipe")->allow_extra_args(false);
  command->callback([=] { check_command(*recipe, *settings); });
}

void add_inspect(CLI::App& app) {
  auto* command = app.add_subcommand("inspect", "Show what a dataset holds, or one of its rows as text");
  auto options = std::make_shared<InspectOptions>();
  command->add_option("dataset", options->dataset, "Folder of the dataset")->required();
  command->add_option("--row", options->row, "Number of a row; training rows come first");
  command->add_flag("--json", options->json, "Print JSON");
  command->add_flag("--verify", options->verify, "Read everything and compare the hashes first; says so unless --json");
  command->callback([=] { inspect_command(*options); });
}

void add_text_commands(CLI::App& app) {
  auto* encode = app.add_subcommand("encode", "Print the token ids of a text with a dataset's tokenizer");
  auto dataset = std::make_shared<std::string>();
  auto text = std::make_shared<std::optional<std::string>>();
  encode->add_option("dataset", *dataset, "Folder of the dataset")->required();
  encode->add_option("--text", *text, "The text; without it stdin is read");
  encode->callback([=] { encode_command(*dataset, *text); });
  auto* decode = app.add_subcommand("decode", "Read token ids from stdin and write their text as it comes");
  decode->add_option("dataset", *dataset, "Folder of the dataset")->required();
  auto options = std::make_shared<DecodeOptions>();
  options->terminal = isatty(STDOUT_FILENO) == 1;
  decode->add_option("--dim", options->dim, "Show the first so many tokens dim where stdout is a terminal");
  decode->add_flag("--line", options->line, "End a text with a line end that has none");
  decode->callback([=] { decode_command(*dataset, std::cin, *options); });
}

void add_rows(CLI::App& app) {
  auto* command = app.add_subcommand("rows", "Print rows as JSON, one a line: tokens, targets, documents");
  auto options = std::make_shared<RowsOptions>();
  command->add_option("dataset", options->dataset, "Folder of the dataset")->required();
  command->add_option("--split", options->split, "train or validation")->capture_default_str();
  command->add_option("--first", options->first, "First row of that part")->capture_default_str();
  command->add_option("--count", options->count, "Number of rows; fewer if there are no more")->capture_default_str();
  command->callback([=] { rows_command(*options); });
}

int command_line(int argc, char** argv) {
  CLI::App app("Datasets: packs text, shows what is in them", "ganymede data");
  app.require_subcommand(1);
  add_pack(app);
  add_check(app);
  add_inspect(app);
  add_text_commands(app);
  add_rows(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    command_line::refuse(app, error);
  }
  return static_cast<int>(ExitCode::done);
}

bool is_service(int argc, char** argv) {
  return argc > 1 && std::any_of(std::begin(service_flags), std::end(service_flags),
                                 [&](const char* flag) { return std::string_view(argv[1]).starts_with(flag); });
}

}  // namespace

int program(int argc, char** argv) {
  if (is_service(argc, argv))
    return service::run(service::Kind::data, argc, argv,
                        [](service::Context& context) { serve(context, service::read_job().dataset); });
  std::signal(SIGPIPE, SIG_IGN);
  return run_command("ganymede-data: ", [&] { return command_line(argc, argv); });
}

}  // namespace ganymede::data
