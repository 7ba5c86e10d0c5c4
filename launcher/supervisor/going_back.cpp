#include "launcher/supervisor/going_back.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>

#include "common/base/error.h"
#include "common/os/fd.h"
#include "common/os/files.h"
#include "common/service/checkpoint_name.h"
#include "launcher/keeper/gone_back.h"

namespace ganymede::launcher {
namespace {

namespace fs = std::filesystem;

constexpr const char* copy_stem = "abandoned.";
constexpr const char* unfinished = "abandoned.unfinished";  // what a kill leaves of a copy

void copy_durably(const fs::path& from, const fs::path& to) {
  fs::copy_file(from, to);
  os::Fd fd(::open(to.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd || ::fsync(fd.get()) != 0) fail("File {} cannot be synced: {}.", to.string(), std::strerror(errno));
}

/// Files of values are written once and never changed. Where a file system has no links they are copied.
void link_or_copy(const fs::path& from, const fs::path& to) {
  std::error_code none;
  if (from.extension() == ".sst") fs::create_hard_link(from, to, none);
  if (from.extension() != ".sst" || none) copy_durably(from, to);
}

/// Folder by folder, each with its names on disk; without copies that were made before.
void copy_folder(const fs::path& from, const fs::path& to) {
  os::make_private_folder(to.string());
  for (const auto& entry : fs::directory_iterator(from)) {
    fs::path name = entry.path().filename();
    if (name.string().starts_with(copy_stem)) continue;
    if (entry.is_directory())
      copy_folder(entry.path(), to / name);
    else if (entry.is_regular_file())
      link_or_copy(entry.path(), to / name);
  }
  os::sync_folder(to.string());
}

fs::path unused_name(const fs::path& folder) {
  int number = 1;
  while (fs::exists(folder / (copy_stem + std::to_string(number)))) ++number;
  return folder / (copy_stem + std::to_string(number));
}

/// Returns its name.
std::string keep_copy() {
  fs::path folder = service::checkpoint_folder, growing = folder / unfinished;
  try {
    fs::remove_all(growing);
    copy_folder(folder, growing);
    if (fs::exists(service::metrics_file)) copy_durably(service::metrics_file, growing / service::metrics_file);
    os::sync_folder(growing.string());
    fs::path kept = unused_name(folder);
    fs::rename(growing, kept);
    os::sync_folder(folder.string());
    return kept.string();
  } catch (const std::exception& error) {
    std::error_code ignored;
    fs::remove_all(growing, ignored);
    fail("The checkpoints that going back leaves behind cannot be kept: {} Nothing was changed.", error.what());
  }
}

/// Files of manifests beyond `step`, damaged ones too, by step.
std::map<std::uint64_t, std::string> newer_than(const service::Manifests& own, std::uint64_t step) {
  std::map<std::uint64_t, std::string> files;
  for (const service::Manifest& one : own.intact)
    if (one.step > step)
      files[one.step] = fmt::format("{}/{}", service::checkpoint_folder, service::manifest_name(one.step));
  for (const service::DamagedManifest& one : own.damaged)
    if (one.step > step) files[one.step] = one.file;
  return files;
}

}  // namespace

std::uint64_t step_to_go_back_to(const std::string& from) {
  service::CheckpointName name = service::read_checkpoint_name(from);
  return name.own() && !keeper::has_gone_back() ? name.step : 0;
}

service::Manifests up_to(service::Manifests own, std::uint64_t step, const std::string& run) {
  std::string known;
  for (const service::Manifest& one : own.intact) known += fmt::format("{}{}", known.empty() ? "" : ", ", one.step);
  std::erase_if(own.intact, [step](const auto& one) { return one.step > step; });
  std::erase_if(own.damaged, [step](const auto& one) { return one.step > step; });
  for (const service::DamagedManifest& one : own.damaged)
    if (one.step == step)
      fail_usage("--from {}: {} Those that are intact: {}.", step, one.reason, known.empty() ? "none" : known);
  if (!own.intact.empty() && own.intact.back().step == step) return own;
  if (known.empty())
    fail_usage("--from {}: the run in {} has no checkpoint to go back to; --from takes a folder for a new run.", step,
               run);
  fail_usage("--from {}: the run in {} has no checkpoint of this step; it can go back to {}.", step, run, known);
}

void check_steps_behind(std::uint64_t step, const config::Config& config) {
  if (static_cast<std::uint64_t>(config.run.steps) > step) return;
  fail_usage("--from {}: key 'run.steps' is {}, so there is nothing to do behind it: go on with more (--steps).", step,
             config.run.steps);
}

std::string set_newer_aside(const service::Manifests& own, std::uint64_t step, const std::string& run) {
  auto newer = newer_than(own, step);
  if (newer.empty()) return "";
  std::string kept = keep_copy();
  std::string steps;
  for (const auto& [later, file] : newer) steps += fmt::format("{}{}", steps.empty() ? "" : ", ", later);
  for (auto one = newer.rbegin(); one != newer.rend(); ++one) {
    std::error_code error;
    fs::remove(one->second, error);
    if (error) fail("{} cannot be removed: {}.", one->second, error.message());
    os::sync_folder(service::checkpoint_folder);  // newest first on disk as well
  }
  return fmt::format(
      "going back to step {}: the run up to now, with its checkpoints of steps {} after that and its metrics, is kept "
      "in {}/{}; remove that folder once it is not needed",
      step, steps, run, kept);
}

}  // namespace ganymede::launcher
