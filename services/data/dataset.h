#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/config/config.h"
#include "common/os/files.h"
#include "services/data/blocks.h"
#include "services/data/dataset_format.h"
#include "services/data/file_watch.h"
#include "services/data/meta.h"
#include "services/data/tokenizer.h"

namespace ganymede::data {

/// One row of a dataset. Its segments live as long as the dataset.
struct Row {
  std::span<const Segment> segments;
  std::uint64_t cost = 0;
  std::uint32_t loss_tokens = 0, tokens = 0;
};

/// A packed dataset, memory-mapped for reading. Every block of it is compared with its hash when it is first read.
/// Thread-safe.
class Dataset {
 public:
  /// Checks the description, sizes and headers of all files. Throws Error(usage) when `folder` is no dataset, Error
  /// when it was damaged after packing.
  explicit Dataset(std::string folder);

  const std::string& folder() const { return folder_; }
  const Meta& meta() const { return meta_; }

  /// Row `i` < meta().rows(): training rows first (by cost bucket), then validation rows. Throws Error when its
  /// records are not as written.
  Row row(std::uint64_t i) const;

  /// Copies tokens [first, first + out.size()). Throws Error when they are not as written or one is not in the
  /// vocabulary. The range must have come from a row or a document.
  void tokens(std::uint64_t first, std::span<std::int32_t> out) const;

  /// First token of document `d` ≤ meta().documents. Throws Error when it is not as written.
  std::uint64_t document_begin(std::uint64_t d) const;

  /// The tokenizer that made it. Throws Error when its model is damaged.
  std::unique_ptr<Tokenizer> open_tokenizer() const;

  /// Throws Error when a file of it was written to since it was opened: what was compared with its hash once may be
  /// something else now. Cheap. After a change of attributes alone all blocks are compared again.
  void check_unchanged() const;

  /// Reads everything and compares the hashes. Throws Error naming the first file that differs.
  void verify() const;

 private:
  /// Maps a file of the dataset; its header, as far as it is alike in all of them, is checked.
  FileHeader open(const char* name, const std::array<char, 8>& magic, os::FileMapping& file) const;
  void open_tokens();
  void open_index();
  void open_blocks();
  template <class T>
  std::span<const T> index_part(std::span<const T> part, const char* what) const;
  [[noreturn]] void damaged(const std::string& what) const;
  [[noreturn]] void header_damaged(const char* name) const;

  std::string folder_;
  Meta meta_;
  std::vector<std::pair<const char*, FileWatch>> watches_;  // by name
  os::FileMapping tokens_file_, index_file_, blocks_file_;
  BlockCheck token_blocks_, index_blocks_;
  std::uint32_t width_ = 2;
  std::span<const std::uint64_t> documents_;
  std::span<const RowRecord> rows_;
  std::span<const Segment> segments_;
};

/// Throws Error(usage) unless the dataset is what `config.data` asks for: tokenizer, seq_len, a vocabulary that the
/// model has and, where it has the sources that the configuration names, what was taken of them.
void check_matches(const Dataset& dataset, const config::Config& config);

}  // namespace ganymede::data
