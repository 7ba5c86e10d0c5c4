#include "services/data/output_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <thread>

#include "common/base/error.h"
#include "common/base/standard_error.h"
#include "common/os/files.h"

namespace ganymede::data {
namespace {

namespace fs = std::filesystem;

constexpr auto poll_every = std::chrono::milliseconds(100);

fs::path normal(const std::string& target) {
  fs::path path = fs::path(target).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();  // a name that ended in a slash
  if (path.filename().empty() || path.filename() == "." || path.filename() == "..")
    fail_usage("\"{}\" is no name for a dataset's folder.", target);
  return path;
}

os::Fd open_folder(const std::string& path) {
  return os::Fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
}

/// Whether `path` still names the folder that `fd` is open on (its builder may have published or removed it).
bool same_folder(const os::Fd& fd, const std::string& path) {
  struct stat opened {
  }, named{};
  return ::fstat(fd.get(), &opened) == 0 && ::lstat(path.c_str(), &named) == 0 && opened.st_ino == named.st_ino &&
         opened.st_dev == named.st_dev;
}

/// The folder, made if needed and locked; empty when another process holds it.
os::Fd make_and_lock(const std::string& path) {
  while (true) {
    if (::mkdir(path.c_str(), 0755) != 0 && errno != EEXIST)
      fail("Folder {} cannot be made: {}.", path, std::strerror(errno));
    os::Fd fd = open_folder(path);
    if (!fd && errno == ENOENT) continue;
    if (!fd) fail("Folder {} cannot be opened: {}.", path, std::strerror(errno));
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK) return {};
      fail("Folder {} cannot be locked: {}.", path, std::strerror(errno));
    }
    if (same_folder(fd, path)) return fd;
  }
}

void clear(const std::string& folder) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) fs::remove_all(entry.path(), error);
  if (error) fail("What an earlier packing left in {} cannot be removed: {}.", folder, error.message());
}

void sync(const std::string& folder) {
  os::Fd fd = open_folder(folder);
  if (!fd || ::fsync(fd.get()) != 0) fail("Folder {} cannot be synced: {}.", folder, std::strerror(errno));
}

}  // namespace

OutputFolder::OutputFolder(const std::string& target, Deadline wait) {
  fs::path path = normal(target);
  std::string parent = path.has_parent_path() ? path.parent_path().string() : ".";
  target_ = path.string();
  draft_ = parent + "/." + path.filename().string() + ".packing";
  std::error_code ignored;
  if (!fs::is_directory(parent, ignored)) os::make_private_folder(parent);
  bool told = false;
  while (!(lock_ = make_and_lock(draft_))) {
    if (wait.passed()) fail("Another process is packing {}: wait until it is done, or end it.", target_);
    if (!told) print_error("another process is packing {}, waiting for it\n", target_);
    told = true;
    std::this_thread::sleep_for(poll_every);
  }
  clear(draft_);
}

OutputFolder::~OutputFolder() {
  if (published_ || !lock_) return;
  std::error_code ignored;
  fs::remove_all(draft_, ignored);
}

void OutputFolder::publish() {
  sync(draft_);
  // Replaces an empty folder at most.
  if (::rename(draft_.c_str(), target_.c_str()) != 0)
    fail("{} cannot be put in place: {}.", target_,
         errno == ENOTEMPTY || errno == EEXIST || errno == ENOTDIR ? "something else took its name"
                                                                   : std::strerror(errno));
  published_ = true;
  fs::path parent = fs::path(target_).parent_path();
  sync(parent.empty() ? "." : parent.string());
}

bool OutputFolder::taken(const std::string& target) {
  std::error_code error;
  fs::path path = normal(target);
  return fs::is_directory(path, error) ? !fs::is_empty(path, error) : fs::exists(fs::symlink_status(path, error));
}

}  // namespace ganymede::data
