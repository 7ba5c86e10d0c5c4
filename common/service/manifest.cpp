#include <algorithm>
#include <cmath>
#include <filesystem>

#include "common/base/error.h"
#include "common/os/files.h"
#include "common/service/json_fields.h"
#include "common/service/run_directory.h"

namespace ganymede::service {
namespace {

bool is_manifest(const std::filesystem::path& path) {
  std::string file = path.filename().string();
  return file.starts_with("manifest.") && file.ends_with(".json");
}

std::vector<std::string> manifest_files(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (is_manifest(at->path())) files.push_back(at->path().string());
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    fail("Checkpoint folder {} cannot be read: {}.", folder, error.message());
  }
  std::sort(files.begin(), files.end());
  return files;
}

Manifest::Part read_part(const JsonFields& fields) {
  return {fields.small_number("rank"), fields.number("bytes"), fields.text("hash")};
}

Manifest read_manifest(const std::string& file) {
  JsonFields fields(file, os::read_file(file), "remove it to go on from the checkpoint before it");
  Manifest manifest;
  manifest.step = fields.number("step");
  manifest.world = fields.small_number("world");
  manifest.expert_group = fields.small_number("expert_group");
  manifest.loss = fields.real("loss");
  manifest.optimizer = fields.text("optimizer");
  manifest.model_hash = fields.text("model_hash");
  manifest.config = fields.text("config");
  manifest.tokenizer = fields.text("tokenizer");
  for (const JsonFields& part : fields.objects("parts")) manifest.parts.push_back(read_part(part));
  std::string named = std::filesystem::path(file).filename().string();
  if (named != manifest_name(manifest.step)) fields.wrong(fmt::format("it is of step {}", manifest.step));
  bool complete = manifest.world > 0 && manifest.parts.size() == static_cast<std::size_t>(manifest.world);
  for (std::size_t i = 0; complete && i < manifest.parts.size(); ++i) {
    complete = manifest.parts[i].rank == static_cast<int>(i);
  }
  if (!complete) fields.wrong(fmt::format("its parts are not those of {} ranks", manifest.world));
  return manifest;
}

}  // namespace

std::uint64_t Manifest::bytes() const {
  std::uint64_t sum = 0;
  for (const Part& part : parts) sum += part.bytes;
  return sum;
}

std::string manifest_name(std::uint64_t step) { return fmt::format("manifest.{:012}.json", step); }

void write_manifest(const std::string& folder, const Manifest& manifest) {
  std::vector<Manifest::Part> sorted = manifest.parts;
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.rank < b.rank; });
  nlohmann::json parts = nlohmann::json::array();
  for (const Manifest::Part& part : sorted) {
    parts.push_back({{"rank", part.rank}, {"bytes", part.bytes}, {"hash", part.hash}});
  }
  // JSON has no NaN; null stands for it.
  nlohmann::json loss = std::isfinite(manifest.loss) ? nlohmann::json(manifest.loss) : nlohmann::json();
  nlohmann::json object = {{"step", manifest.step},
                           {"world", manifest.world},
                           {"expert_group", manifest.expert_group},
                           {"loss", loss},
                           {"optimizer", manifest.optimizer},
                           {"model_hash", manifest.model_hash},
                           {"config", manifest.config},
                           {"tokenizer", manifest.tokenizer},
                           {"parts", parts}};
  std::string file = fmt::format("{}/{}", folder, manifest_name(manifest.step));
  os::write_file_atomically(file, json_text(object, file));
}

std::vector<Manifest> read_manifests(const std::string& folder) {
  std::vector<Manifest> manifests;
  for (const std::string& file : manifest_files(folder)) manifests.push_back(read_manifest(file));
  return manifests;
}

std::string find_checkpoints(const std::string& folder) {
  std::string inside = fmt::format("{}/{}", folder, checkpoint_folder);
  std::error_code ignored;
  if (std::filesystem::is_directory(inside, ignored)) return inside;
  if (std::filesystem::is_directory(folder, ignored) && !manifest_files(folder).empty()) return folder;
  fail_usage("{} is neither a run directory with checkpoints nor a checkpoint folder.", folder);
}

}  // namespace ganymede::service
