#include "launcher/cli/recipe_paths.h"

#include <filesystem>

#include "common/config/fields.h"
#include "common/service/run_directory.h"

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

}  // namespace ganymede::cli
