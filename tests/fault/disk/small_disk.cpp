#include "tests/fault/disk/small_disk.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include "common/base/error.h"
#include "common/os/fd.h"
#include "tests/support/temporary_folder.h"

namespace ganymede::test {
namespace {

constexpr const char* ballast = "/ballast";

void must(int result, const std::string& what) {
  if (result != 0) fail("{}: {}.", what, std::strerror(errno));
}

}  // namespace

std::string disk_obstacle() {
  static const std::string obstacle = [] {
    if (::unshare(CLONE_NEWNS) != 0 || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
      return std::string("mounts are not allowed here: ") + std::strerror(errno);
    try {
      TemporaryFolder folder;
      SmallDisk disk(folder.path() + "/disk", 1);
      disk.set_read_only(true);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  }();
  return obstacle;
}

SmallDisk::SmallDisk(const std::string& folder, int megabytes) : folder_(folder) {
  std::filesystem::create_directories(folder);
  std::string size = fmt::format("size={}m", megabytes);
  must(::mount("tmpfs", folder.c_str(), "tmpfs", 0, size.c_str()), "A disk cannot be put into " + folder);
}

SmallDisk::~SmallDisk() {
  if (covered_) ::umount2(folder_.c_str(), MNT_DETACH);
  ::umount2(folder_.c_str(), MNT_DETACH);
}

void SmallDisk::fill() {
  os::Fd file(::open((folder_ + ballast).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  std::vector<char> block(4096);
  ssize_t written = 1;
  while (written > 0) written = ::write(file.get(), block.data(), block.size());
  if (!file || errno != ENOSPC) fail("{} cannot be filled: {}.", folder_, std::strerror(errno));
}

void SmallDisk::make_room() { std::filesystem::remove(folder_ + ballast); }

void SmallDisk::set_read_only(bool read_only) {
  const char* folder = folder_.c_str();
  if (!read_only && covered_) must(::umount2(folder, MNT_DETACH), "The disk cannot be uncovered");
  covered_ = read_only;
  if (!read_only) return;
  must(::mount(folder, folder, nullptr, MS_BIND, nullptr), "The disk cannot be covered");
  must(::mount(nullptr, folder, nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr), "The disk cannot be read-only");
}

}  // namespace ganymede::test
