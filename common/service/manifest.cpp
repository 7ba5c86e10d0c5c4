#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <optional>
#include <string_view>

#include "common/base/error.h"
#include "common/os/files.h"
#include "common/service/json_fields.h"
#include "common/service/run_directory.h"

namespace ganymede::service {
namespace {

constexpr int most_looks = 20;  // at a folder where manifests vanish while they are read

constexpr std::uint64_t most_step = 1'000'000'000'000;
constexpr int most_ranks = 65536;
constexpr std::uint64_t latest_time = 253'402'300'799;  // the end of the year 9999
constexpr std::size_t longest_name = 256;

/// The step in the name of a manifest; nothing for another file.
std::optional<std::uint64_t> named_step(const std::filesystem::path& path) {
  constexpr std::string_view before = "manifest.", behind = ".json";
  std::string file = path.filename().string();
  if (!file.starts_with(before) || !file.ends_with(behind) || file.size() <= before.size() + behind.size()) return {};
  std::uint64_t step = 0;
  const char* end = file.data() + file.size() - behind.size();
  auto parsed = std::from_chars(file.data() + before.size(), end, step);
  bool whole = parsed.ec == std::errc() && parsed.ptr == end && file == manifest_name(step);
  return whole ? std::optional(step) : std::nullopt;
}

struct ManifestFile {
  std::uint64_t step = 0;
  std::string path;
};

/// By step.
std::vector<ManifestFile> manifest_files(const std::string& folder) {
  std::vector<ManifestFile> files;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (auto step = named_step(at->path())) files.push_back({*step, at->path().string()});
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    fail("Checkpoint folder {} cannot be read: {}.", folder, error.message());
  }
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.step < b.step; });
  return files;
}

/// What no run can have.
void check_bounds(const Manifest& manifest, const JsonFields& fields) {
  if (manifest.step == 0 || manifest.step > most_step) fields.wrong(fmt::format("its step is {}", manifest.step));
  if (manifest.world > most_ranks) fields.wrong(fmt::format("it is of {} ranks", manifest.world));
  if (manifest.written > latest_time) fields.wrong(fmt::format("\"written\" is {}, too large", manifest.written));
  const std::string& name = manifest.optimizer;
  bool printable = std::none_of(name.begin(), name.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
  if (name.empty() || name.size() > longest_name || !printable) fields.wrong("\"optimizer\" is no name");
}

Manifest::Part read_part(const JsonFields& fields) {
  return {fields.small_number("rank"), fields.number("bytes"), fields.text("hash")};
}

step_protocol::StepStatistics read_statistics(const JsonFields& fields) {
  step_protocol::StepStatistics statistics{
      .steps = fields.number("steps"),
      .loss = {.mean = fields.real("loss_mean"), .variance = fields.real("loss_variance")},
      .grad_norm = {.mean = fields.real("grad_norm_mean"), .variance = fields.real("grad_norm_variance")}};
  if (!sound(statistics) || statistics.steps > most_step) fields.wrong("\"statistics\" has values that cannot be");
  return statistics;
}

/// 17 significant digits or as many as it needs: they are read with the same bits.
nlohmann::json statistics_json(const step_protocol::StepStatistics& statistics) {
  return {{"steps", statistics.steps},
          {"loss_mean", statistics.loss.mean},
          {"loss_variance", statistics.loss.variance},
          {"grad_norm_mean", statistics.grad_norm.mean},
          {"grad_norm_variance", statistics.grad_norm.variance}};
}

ManifestOptimizer read_optimizer(const JsonFields& fields) {
  return {fields.text("name"), fields.text("version"), fields.text("hash")};
}

Manifest read_manifest(const std::string& file) {
  JsonFields fields(file, os::read_file(file), "put it back from a copy, or remove it");
  Manifest manifest;
  manifest.step = fields.number("step");
  manifest.world = fields.small_number("world");
  manifest.expert_group = fields.small_number("expert_group");
  manifest.loss = fields.real("loss");
  manifest.optimizer = fields.text("optimizer");
  manifest.model_hash = fields.text("model_hash");
  manifest.config = fields.text("config");
  manifest.tokenizer = fields.text("tokenizer");
  manifest.dataset = fields.text("dataset");
  if (fields.has("statistics")) manifest.statistics = read_statistics(fields.object("statistics"));
  manifest.updates = fields.has("updates") ? fields.number("updates") : manifest.step;
  if (manifest.updates > manifest.step) fields.wrong("\"updates\" is more than its step");
  if (fields.has("written")) manifest.written = fields.number("written");
  if (fields.has("optimizers"))
    for (const JsonFields& one : fields.objects("optimizers")) manifest.optimizers.push_back(read_optimizer(one));
  for (const JsonFields& part : fields.objects("parts")) manifest.parts.push_back(read_part(part));
  check_bounds(manifest, fields);
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
                           {"dataset", manifest.dataset},
                           {"written", manifest.written},
                           {"updates", manifest.updates},
                           {"parts", parts}};
  for (const ManifestOptimizer& one : manifest.optimizers)
    object["optimizers"].push_back({{"name", one.name}, {"version", one.version}, {"hash", one.hash}});
  if (manifest.statistics) object["statistics"] = statistics_json(*manifest.statistics);
  std::string file = fmt::format("{}/{}", folder, manifest_name(manifest.step));
  os::write_file_atomically(file, json_text(object, file));
}

namespace {

/// Nothing when one was removed meanwhile: then a newer one, which it made way for, may be missing in the list as well.
std::optional<Manifests> look(const std::string& folder) {
  Manifests manifests;
  for (const ManifestFile& file : manifest_files(folder)) {
    try {
      manifests.intact.push_back(read_manifest(file.path));
    } catch (const Error& error) {
      std::error_code ignored;
      if (!std::filesystem::exists(file.path, ignored)) return std::nullopt;
      manifests.damaged.push_back({file.step, file.path, error.what()});
    }
  }
  return manifests;
}

}  // namespace

Manifests find_manifests(const std::string& folder) {
  for (int looks = 0; looks < most_looks; ++looks) {
    if (auto manifests = look(folder)) return *manifests;
  }
  fail("Checkpoint folder {} cannot be read: its manifests are removed all the time.", folder);
}

std::vector<Manifest> read_manifests(const std::string& folder) { return find_manifests(folder).intact; }

std::vector<DamagedManifest> Manifests::passed_over() const {
  std::vector<DamagedManifest> later;
  for (const DamagedManifest& one : damaged) {
    if (intact.empty() || one.step > intact.back().step) later.push_back(one);
  }
  return later;
}

Manifest choose_manifest(const Manifests& manifests, const std::string& folder, std::uint64_t step) {
  for (const DamagedManifest& one : manifests.damaged) {
    if (step != 0 && one.step == step) fail("{}", one.reason);
  }
  if (manifests.intact.empty() && !manifests.damaged.empty()) {
    fail("There is no intact checkpoint in {}: {}", folder, manifests.damaged.back().reason);
  }
  if (manifests.intact.empty()) fail_usage("There is no complete checkpoint in {} yet.", folder);
  if (step == 0) return manifests.intact.back();
  std::string known;
  for (const Manifest& manifest : manifests.intact) {
    if (manifest.step == step) return manifest;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", manifest.step);
  }
  fail_usage("There is no complete checkpoint of step {} in {}; those that are complete: {}.", step, folder, known);
}

std::string find_checkpoints(const std::string& folder) {
  std::string inside = fmt::format("{}/{}", folder, checkpoint_folder);
  std::error_code ignored;
  if (std::filesystem::is_directory(inside, ignored)) return inside;
  if (std::filesystem::is_directory(folder, ignored) && !manifest_files(folder).empty()) return folder;
  fail_usage("{} is neither a run directory with checkpoints nor a checkpoint folder.", folder);
}

}  // namespace ganymede::service
