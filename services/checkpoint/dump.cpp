#include "services/checkpoint/dump.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "common/base/error.h"
#include "services/checkpoint/value.h"

namespace ganymede::checkpoint {
namespace {

/// A file that is removed unless it was completed.
class PartialFile {
 public:
  PartialFile(std::string path, bool force) : path_(std::move(path)), partial_(path_ + ".partial") {
    std::error_code error;
    if (std::filesystem::exists(path_, error) && !std::filesystem::is_regular_file(path_, error))
      fail_usage("--to {}: that is no file; name one that is made or replaced.", path_);
    if (std::filesystem::exists(path_, error) && !force)
      fail_usage("--to {}: that file is there already; name another, or replace it with --force.", path_);
    file_ = std::fopen(partial_.c_str(), "wbe");
    if (file_ == nullptr) fail("{} cannot be made: {}.", partial_, std::strerror(errno));
  }
  ~PartialFile() {
    if (file_ == nullptr) return;
    std::fclose(file_);
    std::remove(partial_.c_str());
  }
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;

  void write(const void* data, std::size_t bytes) {
    if (std::fwrite(data, 1, bytes, file_) != bytes) fail("{} cannot be written: {}.", partial_, std::strerror(errno));
    written_ += bytes;
  }
  std::uint64_t complete() {
    if (std::fflush(file_) != 0 || ::fsync(::fileno(file_)) != 0)
      fail("{} cannot be written: {}.", partial_, std::strerror(errno));
    if (std::rename(partial_.c_str(), path_.c_str()) != 0) fail("{} cannot be made: {}.", path_, std::strerror(errno));
    std::fclose(file_);
    file_ = nullptr;
    return written_;
  }

 private:
  std::string path_, partial_;
  std::FILE* file_ = nullptr;
  std::uint64_t written_ = 0;
};

/// Header of the safetensors format: a length, then JSON padded with spaces to a multiple of 8.
std::string header(const CheckpointView& view) {
  nlohmann::json json = {{"__metadata__", {{"format", "pt"}, {"step", std::to_string(view.manifest().step)}}}};
  std::uint64_t offset = 0;
  for (const auto& [name, shape] : view.shapes()) {
    std::uint64_t bytes = sizeof(float);
    for (std::int64_t size : shape) bytes *= static_cast<std::uint64_t>(size);
    json[name] = {{"dtype", "F32"}, {"shape", shape}, {"data_offsets", {offset, offset + bytes}}};
    offset += bytes;
  }
  std::string text = json.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

}  // namespace

std::uint64_t dump(CheckpointView& view, const std::string& path, bool force, const Progress& progress) {
  auto damaged = [&](const std::string& where, const std::string& why) {
    fail("The checkpoint of step {} in {} is damaged at {}: {}.", view.manifest().step, view.folder(), where, why);
  };
  if (!view.damage().empty()) damaged(view.damage().front().where, view.damage().front().reason);
  PartialFile file(path, force);
  std::string text = header(view);
  std::uint64_t length = text.size();
  file.write(&length, sizeof length);
  file.write(text.data(), text.size());
  std::uint64_t done = 0, total = 0;
  for (const CheckpointView::Entry& entry : view.entries()) {
    if (entry.key.slot == master_slot) total += static_cast<std::uint64_t>(entry.count) * sizeof(float);
  }
  rocksdb::PinnableSlice bytes;
  for (const auto& [name, shape] : view.shapes()) {
    for (const CheckpointView::Entry& entry : view.entries(master_slot, name)) {
      if (std::string damage = view.read(entry, bytes); !damage.empty()) damaged(place(entry), damage);
      auto data = data_of({bytes.data(), bytes.size()});
      file.write(data.data(), data.size());
      progress(done += data.size(), total);
    }
  }
  return file.complete();
}

}  // namespace ganymede::checkpoint
