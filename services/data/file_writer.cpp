#include "services/data/file_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "common/base/error.h"

namespace ganymede::data {
namespace {

constexpr std::size_t buffer_bytes = 1 << 20;

void write_at(int fd, std::span<const std::byte> bytes, std::uint64_t offset, const std::string& path) {
  while (!bytes.empty()) {
    ssize_t n = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("{} cannot be written: {}.", path, std::strerror(errno));
    bytes = bytes.subspan(static_cast<std::size_t>(n));
    offset += static_cast<std::uint64_t>(n);
  }
}

}  // namespace

std::uint64_t header_hash(const FileHeader& header) {
  return hash64(std::as_bytes(std::span(&header, 1)).first(offsetof(FileHeader, hash)));
}

FileWriter::FileWriter(const std::string& path, std::string name, bool with_header)
    : path_(path),
      name_(std::move(name)),
      fd_(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644)),
      with_header_(with_header) {
  if (!fd_) fail("{} cannot be made: {}.", path, std::strerror(errno));
  if (with_header) written_ = sizeof(FileHeader);
  buffer_.reserve(buffer_bytes);
}

void FileWriter::write(std::span<const std::byte> bytes) {
  hash_.add(bytes);
  blocks_.add(bytes);
  if (buffer_.size() + bytes.size() > buffer_bytes) flush();
  if (bytes.size() > buffer_bytes) {
    write_at(fd_.get(), bytes, written_, path_);
    written_ += bytes.size();
  } else {
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  }
}

void FileWriter::flush() {
  write_at(fd_.get(), buffer_, written_, path_);
  written_ += buffer_.size();
  buffer_.clear();
}

FileRecord FileWriter::finish(FileHeader header) {
  flush();
  if (with_header_) {
    header.hash = header_hash(header);
    write_at(fd_.get(), std::as_bytes(std::span(&header, 1)), 0, path_);
  }
  if (::fsync(fd_.get()) != 0) fail("{} cannot be synced: {}.", path_, std::strerror(errno));
  fd_ = os::Fd();
  return {name_, written_, hash_.value().hex()};
}

}  // namespace ganymede::data
