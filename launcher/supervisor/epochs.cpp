#include "launcher/supervisor/epochs.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <vector>

#include "common/base/error.h"
#include "common/base/log.h"
#include "common/os/files.h"

namespace ganymede::launcher {
namespace {

namespace fs = std::filesystem;

std::string file_of(std::uint64_t epoch) { return fmt::format("config.{}.toml", epoch); }

/// What cannot be removed does no harm: the next start does it.
void remove_quietly(const std::string& file) {
  std::error_code error;
  fs::remove(file, error);
  if (error) log::warn("{} cannot be removed: {}", file, error.message());
}

/// Numbers of the files config.<number>.toml.
std::vector<std::uint64_t> numbers_used() {
  constexpr std::string_view head = "config.", tail = ".toml";
  std::vector<std::uint64_t> numbers;
  for (const auto& entry : fs::directory_iterator(".")) {
    std::string name = entry.path().filename().string();
    if (!name.starts_with(head) || !name.ends_with(tail) || name.size() <= head.size() + tail.size()) continue;
    std::uint64_t number = 0;
    const char *begin = name.data() + head.size(), *end = name.data() + name.size() - tail.size();
    auto read = std::from_chars(begin, end, number);
    if (read.ec == std::errc() && read.ptr == end) numbers.push_back(number);
  }
  return numbers;
}

}  // namespace

Epochs::Epochs(const config::Config& config, const service::Job& job) : job_(job) { configs_[first()] = config; }

const config::Config& Epochs::config_of(std::uint64_t epoch) {
  if (auto known = configs_.find(epoch); known != configs_.end()) return known->second;
  return configs_[epoch] = config::load(job_.epoch(epoch).config, {});
}

const config::Config* Epochs::find_config(std::uint64_t epoch) {
  bool listed = std::ranges::any_of(job_.epochs, [&](const auto& one) { return one.number == epoch; });
  return listed || configs_.contains(epoch) ? &config_of(epoch) : nullptr;
}

std::uint64_t Epochs::add(const std::string& configuration, const std::vector<service::JobPlugin>& plugins) {
  std::uint64_t number = std::max(first(), job_.last_epoch) + 1;
  add(number, configuration, plugins);
  return number;
}

void Epochs::add(std::uint64_t number, const std::string& configuration,
                 const std::vector<service::JobPlugin>& plugins) {
  os::write_file_atomically(file_of(number), configuration);
  config::Config config = config::load(file_of(number), {});
  service::Job job = job_;
  if (job.epochs.empty()) {
    os::write_file_atomically(file_of(0), config::effective(config_of(0)));  // config.toml will be the new one's
    job.epochs.push_back({0, file_of(0), job.plugins});
  }
  job.epochs.push_back({number, file_of(number), plugins});
  job.last_epoch = std::max(job.last_epoch, number);
  service::write_job(job);
  job_ = std::move(job);
  configs_[number] = std::move(config);
}

void Epochs::drop(std::uint64_t epoch) {
  service::JobEpoch dropped = of(epoch);
  service::Job job = job_;
  std::erase_if(job.epochs, [epoch](const auto& one) { return one.number == epoch; });
  service::write_job(job);
  job_ = std::move(job);
  remove_quietly(dropped.config);
  forget(dropped.plugins);
}

void Epochs::forget(const std::vector<service::JobPlugin>& plugins) const {
  auto needs = [](const std::vector<service::JobPlugin>& needed, const std::string& file) {
    return std::ranges::any_of(needed, [&](const auto& one) { return one.file == file; });
  };
  for (const service::JobPlugin& one : plugins) {
    bool copy = fs::path(one.file).parent_path() == service::plugin_folder;
    bool listed = std::ranges::any_of(job_.epochs, [&](const auto& epoch) { return needs(epoch.plugins, one.file); });
    if (copy && !listed && !needs(job_.plugins, one.file)) remove_quietly(one.file);
  }
}

void Epochs::settle(std::uint64_t epoch) {
  service::Job job = job_;
  job.epochs = {job_.epoch(epoch)};
  job.plugins = job.epochs.front().plugins;
  service::write_job(job);
  job_ = std::move(job);
}

void Epochs::clear() {
  for (std::uint64_t number : numbers_used()) fs::remove(file_of(number));
}

}  // namespace ganymede::launcher
