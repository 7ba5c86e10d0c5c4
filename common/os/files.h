#pragma once

#include "common/os/fd.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ganymede::os {

/// A file, made if it is missing, whose writes go to its end. Throws Error naming path and reason; also for what is no
/// file (a pipe would hold up whoever opens it).
Fd open_for_append(const std::string& path);
/// The whole file. Throws Error naming path and reason, or that it is not a file.
std::string read_file(const std::string& path);
/// Writes to a temporary file beside it, syncs, renames, syncs the folder: afterwards the old or the new content is
/// there, whatever happens. Throws Error (a full disk leaves the old file). A path that leads to a device or a pipe is
/// written to and stays what it is.
void write_file_atomically(const std::string& path, std::string_view content);
/// Makes names that were added to or removed from the folder durable. Throws Error naming folder and reason.
void sync_folder(const std::string& folder);
/// Makes the folder and its parents with mode 0700 for new ones.
void make_private_folder(const std::string& path);

/// An exclusive lock on a file, released by the kernel when the process ends. Empty when another process has it.
/// Writes this process's id into the file.
std::optional<Fd> try_lock(const std::string& path);

struct FileMapping {  // read-only
  const unsigned char* data = nullptr;
  std::uint64_t size = 0;
  FileMapping() = default;
  explicit FileMapping(const std::string& path);  // throws Error
  FileMapping(FileMapping&& other) noexcept;
  FileMapping& operator=(FileMapping&& other) noexcept;
  ~FileMapping();
};

}  // namespace ganymede::os
