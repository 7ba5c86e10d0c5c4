#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "services/data/file_writer.h"
#include "services/data/tokenizer.h"

namespace ganymede::data {

/// What the packer keeps of the documents: where their tokens lie and which part they belong to.
struct DocumentTable {
  std::vector<std::uint64_t> begin = {0};        // first token of each, then the number of all tokens
  std::vector<std::uint32_t> train, validation;  // indices
  std::uint64_t text_bytes = 0;
  std::uint64_t empty = 0;  // left out: less than two tokens
  std::uint64_t tokens() const { return begin.back(); }
  std::uint64_t count() const { return begin.size() - 1; }
};

/// Whether a document is held out: by a hash of its text, so the same text is always in the same part.
bool held_out(std::string_view text, double validation_fraction);

/// Turns documents into tokens.bin: collects some, encodes them on all cores, writes them in order.
class TokenWriter {
 public:
  TokenWriter(const std::string& path, const Tokenizer& tokenizer, double validation_fraction);
  /// Throws Error when the file cannot be written, or at 2^32 documents.
  void add(std::string&& text);
  /// Writes what is left. Nothing can be added afterwards.
  FileRecord finish();
  /// Hashes of the blocks of the tokens; once, after `finish`.
  std::vector<std::uint64_t> block_hashes() { return file_.block_hashes(); }
  /// Complete after `finish`.
  const DocumentTable& documents() const { return documents_; }

 private:
  void encode_waiting();
  void write(const std::string& text, std::vector<std::uint32_t>& ids);

  const Tokenizer& tokenizer_;
  double validation_fraction_;
  std::uint32_t width_;  // bytes a token
  FileWriter file_;
  DocumentTable documents_;
  std::vector<std::string> waiting_;
  std::uint64_t waiting_bytes_ = 0;
};

}  // namespace ganymede::data
