#include "services/data/file_watch.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "common/base/error.h"

namespace ganymede::data {
namespace {

std::int64_t nanoseconds(const timespec& time) { return time.tv_sec * 1'000'000'000 + time.tv_nsec; }

}  // namespace

FileWatch::FileWatch(const std::string& path)
    : path_(path), file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  if (!file_) fail("{} cannot be read: {}.", path, std::strerror(errno));
  first_ = look();
}

FileWatch::Stamp FileWatch::look() const {
  struct stat status {};
  if (::fstat(file_.get(), &status) != 0) fail("{} cannot be read: {}.", path_, std::strerror(errno));
  return {status.st_size, nanoseconds(status.st_mtim), nanoseconds(status.st_ctim)};
}

FileWatch::Change FileWatch::change() const {
  Stamp now = look();
  if (now.bytes != first_.bytes || now.modified_ns != first_.modified_ns) return Change::content;
  return now.changed_ns == first_.changed_ns ? Change::none : Change::touched;
}

}  // namespace ganymede::data
