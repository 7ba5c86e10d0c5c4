#include "services/checkpoint/manifests.h"

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <set>

#include "common/base/error.h"
#include "common/base/hash.h"
#include "common/model_spec/model_hash.h"
#include "common/os/files.h"

namespace ganymede::checkpoint {
namespace {

/// "bytes", or "sentencepiece:" and the hash of the model file. One that was trained for the dataset lies in its
/// folder.
std::string tokenizer_name(const config::Config& config) {
  if (config.data.tokenizer == "bytes") return config.data.tokenizer;
  bool trained = config.data.tokenizer.starts_with("train:");
  std::string file = trained ? config.data.path + "/tokenizer.model" : config.data.tokenizer;
  return fmt::format("sentencepiece:{}", hash128(os::read_file(file)).hex());
}

std::set<std::uint64_t> steps_of(const service::Manifests& manifests) {
  std::set<std::uint64_t> steps;
  for (const service::Manifest& manifest : manifests.intact) steps.insert(manifest.step);
  for (const service::DamagedManifest& manifest : manifests.damaged) steps.insert(manifest.step);
  return steps;
}

}  // namespace

service::Manifest make_manifest(const config::Config& config, const placement::Placement& placement, std::uint64_t step,
                                const Receipt& receipt, const std::string& dataset) {
  auto world = static_cast<std::size_t>(placement.world);
  if (receipt.hashes.size() != world || receipt.bytes.size() != world) {
    fail("The launcher names {} parts of the checkpoint of step {} for {} ranks.", receipt.hashes.size(), step, world);
  }
  service::Manifest manifest;
  manifest.step = manifest.updates = step;
  manifest.world = placement.world;
  manifest.expert_group = placement.expert_group;
  manifest.loss = receipt.loss;
  manifest.optimizer = config.optimizer.name;
  manifest.model_hash = model_spec::model_hash(placement.parameters);
  manifest.config = config::effective(config);
  manifest.tokenizer = tokenizer_name(config);
  manifest.dataset = dataset;
  manifest.written = static_cast<std::uint64_t>(std::time(nullptr));
  for (std::size_t rank = 0; rank < world; ++rank) {
    manifest.parts.push_back({static_cast<int>(rank), receipt.bytes[rank], receipt.hashes[rank]});
  }
  return manifest;
}

void prune_manifests(const std::string& checkpoints, int keep, const Reached& reached) {
  service::Manifests manifests = service::find_manifests(checkpoints);
  std::size_t kept = std::min(manifests.intact.size(), static_cast<std::size_t>(std::max(keep, 1)));
  if (kept == 0) return;
  std::uint64_t oldest = manifests.intact[manifests.intact.size() - kept].step;
  for (std::uint64_t step : steps_of(manifests)) {
    if (step >= oldest) break;
    std::string file = fmt::format("{}/{}", checkpoints, service::manifest_name(step));
    std::error_code error;
    std::filesystem::remove(file, error);
    if (error) fail("Manifest {} cannot be removed: {}.", file, error.message());
    os::sync_folder(checkpoints);
    reached("manifest removed");
  }
}

void prune_parts(const std::string& checkpoints, PartStore& store) {
  service::Manifests manifests = service::find_manifests(checkpoints);
  if (manifests.intact.empty()) return;
  std::set<std::uint64_t> named = steps_of(manifests);
  for (std::uint64_t step : store.steps()) {
    if (!named.contains(step) && step < manifests.intact.back().step) store.drop(step);
  }
}

void drop_unnamed_parts(const std::string& checkpoints, PartStore& store, std::uint64_t job) {
  std::set<std::uint64_t> named = steps_of(service::find_manifests(checkpoints));
  for (std::uint64_t step : store.steps()) {
    if (named.contains(step)) continue;
    std::optional<PartRecord> record = store.record(step);
    if (!record || record->job != job) store.drop(step);
  }
}

}  // namespace ganymede::checkpoint
