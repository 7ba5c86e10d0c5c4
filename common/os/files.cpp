#include "common/os/files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "common/base/error.h"
#include "common/base/log.h"

namespace ganymede::os {
namespace {

std::string reason() { return std::strerror(errno); }

void write_all(int fd, std::string_view content, const std::string& path) {
  while (!content.empty()) {
    ssize_t n = ::write(fd, content.data(), content.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("{} cannot be written: {}.", path, reason());
    content.remove_prefix(static_cast<std::size_t>(n));
  }
}

void write_and_sync(const std::string& path, std::string_view content) {
  Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!fd) fail("{} cannot be made: {}.", path, reason());
  write_all(fd.get(), content, path);
  if (::fsync(fd.get()) != 0) fail("{} cannot be synced: {}.", path, reason());
}

/// Whether the path leads to something that is there and holds no content: a terminal, a pipe, /dev/null.
bool is_device(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

/// Opens what has to be a file: a pipe of this name would hold up whoever opens it until somebody comes to its other
/// end. Folders are left to what is done with them.
Fd open_file(const std::string& path, int flags, const char* failed) {
  Fd fd(::open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK, 0644));
  if (!fd && errno == ENXIO) fail("{} is not a file.", path);
  if (!fd && errno == EISDIR) fail("{} is a folder: move it away.", path);
  if (!fd) fail("{} cannot be {}: {}.", path, failed, reason());
  if (is_device(path)) fail("{} is not a file.", path);
  return fd;
}

/// The file that a link leads to, so that it is replaced and not the link; else the path itself.
std::string linked_file(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_symlink(path, error)) return path;
  std::string target = std::filesystem::canonical(path, error).string();
  return error ? path : target;
}

/// There is no old content to keep, and its name must not become that of a file.
void write_to_device(const std::string& path, std::string_view content) {
  Fd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd && errno == ENXIO) fail("{} is a pipe that nobody reads.", path);
  if (!fd) fail("{} cannot be opened: {}.", path, reason());
  if (::fcntl(fd.get(), F_SETFL, 0) != 0) fail("{} cannot be opened: {}.", path, reason());
  write_all(fd.get(), content, path);
}

std::string folder_of(const std::string& path) {
  auto folder = std::filesystem::path(path).parent_path();
  return folder.empty() ? "." : folder.string();
}

}  // namespace

Fd open_for_append(const std::string& path) { return open_file(path, O_WRONLY | O_CREAT | O_APPEND, "opened"); }

std::string read_file(const std::string& path) {
  Fd fd = open_file(path, O_RDONLY, "read");
  std::string content;
  char piece[1 << 16];
  for (;;) {
    ssize_t n = ::read(fd.get(), piece, sizeof piece);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("{} cannot be read: {}.", path, reason());
    if (n == 0) return content;
    content.append(piece, static_cast<std::size_t>(n));
  }
}

void write_file_atomically(const std::string& given, std::string_view content) {
  if (is_device(given)) return write_to_device(given, content);
  std::string path = linked_file(given);
  std::string draft = fmt::format("{}.{}.draft", path, ::getpid());
  try {
    write_and_sync(draft, content);
    if (::rename(draft.c_str(), path.c_str()) != 0) {
      if (errno == EISDIR) fail("{} cannot be replaced: it is a folder; move it away.", path);
      fail("{} cannot be replaced: {}.", path, reason());
    }
  } catch (const Error&) {
    ::unlink(draft.c_str());
    throw;
  }
  sync_folder(folder_of(path));
}

void sync_folder(const std::string& folder) {
  Fd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || ::fsync(fd.get()) != 0) fail("Folder {} cannot be synced: {}.", folder, reason());
}

void make_private_folder(const std::string& path) {
  if (path.empty()) return;
  if (::mkdir(path.c_str(), 0700) == 0) return;
  int error = errno;
  if (error == ENOENT) {
    std::string parent = std::filesystem::path(path).parent_path().string();
    if (!parent.empty() && parent != path) {
      make_private_folder(parent);
      if (::mkdir(path.c_str(), 0700) == 0) return;
      error = errno;
    }
  }
  // A path that ends in a slash was made with its parent; another process may have been faster.
  std::error_code ignored;
  if (error == EEXIST && std::filesystem::is_directory(path, ignored)) return;
  fail("Folder {} cannot be made: {}.", path, error == EEXIST ? "a file has this name" : std::strerror(error));
}

std::optional<Fd> try_lock(const std::string& path) {
  Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd) fail("Lock file {} cannot be opened: {}.", path, reason());
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return std::nullopt;
    fail("Lock file {} cannot be locked: {}.", path, reason());
  }
  // Who has it is a word to persons: on a full disk it is left out, and the lock holds.
  try {
    if (::ftruncate(fd.get(), 0) == 0) write_all(fd.get(), fmt::format("{}\n", ::getpid()), path);
  } catch (const Error& error) {
    log::warn("{}", error.what());
  }
  return fd;
}

FileMapping::FileMapping(const std::string& path) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (!fd || ::fstat(fd.get(), &status) != 0) fail("{} cannot be read: {}.", path, reason());
  if (!S_ISREG(status.st_mode)) fail("{} is not a file.", path);
  if (status.st_size == 0) return;
  auto length = static_cast<std::size_t>(status.st_size);
  void* at = ::mmap(nullptr, length, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (at == MAP_FAILED) fail("{} cannot be mapped: {}.", path, reason());
  data = static_cast<const unsigned char*>(at);
  size = length;
}

FileMapping::FileMapping(FileMapping&& other) noexcept
    : data(std::exchange(other.data, nullptr)), size(std::exchange(other.size, 0)) {}

FileMapping& FileMapping::operator=(FileMapping&& other) noexcept {
  std::swap(data, other.data);
  std::swap(size, other.size);
  return *this;
}

FileMapping::~FileMapping() {
  if (data) ::munmap(const_cast<unsigned char*>(data), size);
}

}  // namespace ganymede::os
