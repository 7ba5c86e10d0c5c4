#include <csignal>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "common/base/deadline.h"
#include "common/base/error.h"
#include "common/base/text.h"
#include "services/data/commands.h"
#include "services/data/dataset.h"
#include "services/data/interruption.h"
#include "services/data/output_folder.h"

namespace ganymede::data {
namespace {

std::string counted(std::uint64_t value) { return with_commas(static_cast<std::int64_t>(value)); }

std::string validation_line(const Meta& meta) {
  double share = 100.0 * static_cast<double>(meta.validation_rows) / static_cast<double>(meta.rows());
  if (meta.validation_rows == 0) return "no rows held out for validation";
  const char* how =
      meta.split == "tail" ? ", the last ones, as there are too few documents to hold out whole ones" : "";
  return fmt::format("{} rows ({:.1f}%) held out for validation{}", counted(meta.validation_rows), share, how);
}

void print_summary(const Meta& meta, const std::string& folder, double seconds) {
  fmt::print("{} {}, {} of text, {} tokens (tokenizer {}, vocabulary {})\n", counted(meta.documents),
             meta.documents == 1 ? "document" : "documents", human_bytes(static_cast<double>(meta.text_bytes)),
             counted(meta.tokens), meta.tokenizer.origin, meta.tokenizer.vocabulary);
  fmt::print("{} rows of {} tokens, {:.1f}% full; {}\n", counted(meta.rows()), meta.seq_len, 100 * meta.fill(),
             validation_line(meta));
  if (meta.skipped.beyond_bytes > 0)
    fmt::print("left out: {} in {} of the sources' files, beyond max-bytes ({})\n",
               human_bytes(static_cast<double>(meta.skipped.beyond_bytes)), counted(meta.skipped.beyond_files),
               human_bytes(static_cast<double>(meta.max_bytes)));
  if (meta.skipped.total() > 0) fmt::print("skipped: {}\n", meta.skipped.describe());
  fmt::print("packed in {} into {}\n", human_seconds(seconds), folder);
}

void print_json(const Meta& meta, const std::string& folder) {
  auto summary = nlohmann::json::parse(to_json(meta));
  summary["folder"] = folder;
  summary["fill"] = meta.fill();
  fmt::print("{}\n", summary.dump());
}

}  // namespace

void pack_command(const PackOptions& options, bool json) {
  std::signal(SIGXFSZ, SIG_IGN);  // a limit on file sizes is an error of the write, not an end without a word
  Interruption interruption;
  auto begin = Clock::now();
  Meta meta = pack(options);
  double seconds = seconds_since(begin);
  if (json)
    print_json(meta, options.to);
  else
    print_summary(meta, options.to, seconds);
}

void pack_configured(const std::string& config_file, bool json) {
  config::Config config = config::load(config_file, {});
  if (config.data.path.empty())
    fail_usage("{} names no data.path, the folder that the dataset is packed into.", config_file);
  PackOptions options = pack_options(config);
  if (!OutputFolder::taken(options.to)) {
    try {
      return pack_command(options, json);
    } catch (const Error&) {
      if (!OutputFolder::taken(options.to)) throw;  // else another process was faster
    }
  }
  Dataset dataset(options.to);
  check_matches(dataset, config);
  if (json)
    print_json(dataset.meta(), options.to);
  else
    fmt::print("{} is packed already\n", options.to);
}

void check_command(const std::string& recipe, const std::vector<std::string>& settings) {
  config::Config config = config::load(recipe, settings);
  std::error_code ignored;
  if (std::filesystem::exists(config.data.path, ignored)) {
    Dataset dataset(config.data.path);
    check_matches(dataset, config);
    fmt::print("{} fits the recipe: {} training and {} validation rows of {} tokens\n", config.data.path,
               counted(dataset.meta().train_rows), counted(dataset.meta().validation_rows), dataset.meta().seq_len);
  } else if (config.data.path.empty()) {
    fail_usage("{} names no dataset: give key 'data.path' the folder of a packed one.", recipe);
  } else if (config.data.sources.empty()) {
    fail_usage(
        "Dataset {} (data.path) does not exist, and {} names no data.sources to make it from: pack one with `ganymede "
        "data pack`, or name sources.",
        config.data.path, recipe);
  } else {
    fmt::print("{} is not packed yet: `ganymede train` packs it from {} on first use\n", config.data.path,
               fmt::join(config.data.sources, ", "));
  }
}

}  // namespace ganymede::data
