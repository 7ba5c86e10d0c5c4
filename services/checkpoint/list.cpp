#include "services/checkpoint/list.h"

#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <limits>
#include <map>
#include <set>

#include "common/base/error.h"
#include "common/service/run_directory.h"
#include "services/checkpoint/part_reader.h"
#include "services/checkpoint/store_folder.h"

namespace ganymede::checkpoint {
namespace {

std::vector<int> ranks_with_parts(const std::string& checkpoints) {
  std::vector<int> ranks;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(checkpoints, error)) {
    std::string name = entry.path().filename().string();
    int rank = -1;
    constexpr std::size_t prefix = 5;
    if (!name.starts_with("rank.")) continue;
    auto end = std::from_chars(name.data() + prefix, name.data() + name.size(), rank);
    if (end.ec == std::errc() && end.ptr == name.data() + name.size() && rank >= 0) ranks.push_back(rank);
  }
  return ranks;
}

std::uint64_t bytes_of_part(const std::string& checkpoints, int rank, std::uint64_t step) {
  try {
    return PartReader(checkpoints, rank, step).record().bytes();
  } catch (const Error&) {  // it is being written, or was left by a kill
    return 0;
  }
}

/// 0 when the file is gone.
std::time_t time_of(const std::string& file) {
  struct stat status {};
  return ::stat(file.c_str(), &status) == 0 ? status.st_mtime : 0;
}

}  // namespace

std::vector<ListedCheckpoint> list_checkpoints(const std::string& folder) {
  std::string checkpoints = service::find_checkpoints(folder);
  // Manifests first: a part that a manifest read before names is there unless it was lost or removed since.
  service::Manifests manifests = service::find_manifests(checkpoints);
  std::map<std::uint64_t, std::set<int>> parts;
  for (int rank : ranks_with_parts(checkpoints)) {
    for (std::uint64_t step : steps_in_part(checkpoints, rank)) parts[step].insert(rank);
  }
  auto bytes_of = [&](std::uint64_t step) {
    std::uint64_t bytes = 0;
    for (int rank : parts[step]) bytes += bytes_of_part(checkpoints, rank, step);
    return bytes;
  };
  constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
  std::vector<ListedCheckpoint> listed;
  for (const service::Manifest& manifest : manifests.intact) {
    const std::set<int>& there = parts[manifest.step];
    bool complete = std::all_of(manifest.parts.begin(), manifest.parts.end(),
                                [&](const service::Manifest::Part& part) { return there.contains(part.rank); });
    std::string damage;
    for (const service::Manifest::Part& part : manifest.parts) {
      if (damage.empty()) damage = why_not_opened(part_folder(checkpoints, part.rank));
    }
    auto written = static_cast<std::time_t>(manifest.written);
    if (written == 0) written = time_of(fmt::format("{}/{}", checkpoints, service::manifest_name(manifest.step)));
    listed.push_back({manifest.step, manifest.bytes(), complete, manifest.loss, damage, written});
    parts.erase(manifest.step);
  }
  for (const service::DamagedManifest& manifest : manifests.damaged) {
    listed.push_back({manifest.step, bytes_of(manifest.step), false, unknown, manifest.reason, time_of(manifest.file)});
    parts.erase(manifest.step);
  }
  std::uint64_t newest = manifests.intact.empty() ? 0 : manifests.intact.back().step;
  for (const auto& [step, ranks] : parts) {
    if (step < newest) continue;  // its manifest is gone; its parts go when their services look
    listed.push_back({step, bytes_of(step), false, unknown, "", 0});
  }
  std::sort(listed.begin(), listed.end(), [](const auto& a, const auto& b) { return a.step < b.step; });
  return listed;
}

}  // namespace ganymede::checkpoint
