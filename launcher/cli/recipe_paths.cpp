#include "launcher/cli/recipe_paths.h"

#include <filesystem>

#include "common/base/error.h"
#include "common/base/printable.h"
#include "common/config/fields.h"
#include "common/service/run_directory.h"
#include "launcher/supervisor/dataset_packing.h"

namespace ganymede::cli {
namespace {

namespace fs = std::filesystem;

bool names_no_file(const std::string& tokenizer) { return tokenizer == "bytes" || tokenizer.starts_with("train:"); }

}  // namespace

std::vector<std::string> absolute_paths(const config::Config& config, const std::string& folder) {
  std::vector<std::string> settings;
  auto absolute = [&](const std::string& path) { return (fs::path(folder) / path).lexically_normal().string(); };
  auto set = [&](const std::string& key, const std::string& path) {
    settings.push_back(key + "=" + config::toml_text(absolute(path)));
  };
  if (!config.data.path.empty()) set("data.path", config.data.path);
  if (!names_no_file(config.data.tokenizer)) set("data.tokenizer", config.data.tokenizer);
  if (!config.optimizer.plugin_folder.empty()) set("optimizer.plugin_folder", config.optimizer.plugin_folder);
  if (config.data.sources.empty()) return settings;
  std::string list;
  for (const std::string& source : config.data.sources)
    list += (list.empty() ? "" : ", ") + config::toml_text(absolute(source));
  settings.push_back("data.sources=[" + list + "]");
  return settings;
}

std::string default_run(const std::string& recipe) {
  fs::path file(recipe);
  if (file.filename() == service::config_file && fs::exists(file.parent_path() / service::job_file))
    return file.parent_path().string();
  return (fs::path("runs") / file.stem()).string();
}

std::string recipe_file(const std::string& named) {
  fs::path inside = fs::path(named) / service::config_file;
  std::error_code ignored;
  return fs::is_regular_file(inside, ignored) ? inside.string() : named;
}

void check_run_folder(const std::string& run) {
  if (!has_controls(run)) return;
  fail_usage("Run directory '{}' (--run) has control characters in its path: give it a name without them.",
             printable(run));
}

void check_dataset_named(const config::Config& config, const std::string& recipe) {
  if (config.data.path.empty()) {
    fail_usage(
        "{}: key 'data.path' is empty: name the folder of a packed dataset, or the one that data.sources are packed "
        "into.",
        recipe);
  }
  launcher::require_dataset_or_sources(config);
}

}  // namespace ganymede::cli
