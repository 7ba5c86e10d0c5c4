#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/hash.h"
#include "common/os/fd.h"
#include "services/data/blocks.h"
#include "services/data/dataset_format.h"
#include "services/data/meta.h"

namespace ganymede::data {

/// Writes one file of a dataset through a buffer and keeps its size, its hash and those of its blocks. All calls throw
/// Error naming path and reason (a full disk, a limit on file sizes).
class FileWriter {
 public:
  /// `name`: as it appears in meta.json. `with_header`: the first 64 bytes are left for `finish`.
  FileWriter(const std::string& path, std::string name, bool with_header);
  void write(std::span<const std::byte> bytes);
  template <class T>
  void write_all(std::span<const T> values) {
    write(std::as_bytes(values));
  }
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  /// Writes what is buffered, the header (its hash is filled in) and syncs; nothing can be written afterwards.
  FileRecord finish(FileHeader header = {});
  /// Hashes of the blocks of what was written behind the header; once, after `finish`.
  std::vector<std::uint64_t> block_hashes() { return blocks_.finish(); }

 private:
  void flush();
  std::string path_, name_;
  os::Fd fd_;
  std::vector<std::byte> buffer_;
  std::uint64_t written_ = 0;
  bool with_header_;
  StreamingHash hash_;
  BlockHasher blocks_;
};

/// hash64 of all fields but the last.
std::uint64_t header_hash(const FileHeader& header);

}  // namespace ganymede::data
