#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ganymede::data {

/// Which tokenizer made the tokens.
struct TokenizerIdentity {
  std::string kind = "bytes";    // "bytes" or "sentencepiece"
  std::string origin = "bytes";  // "bytes", "train:8192" or "file"
  std::string hash;              // of the SentencePiece model; empty for bytes
  int vocabulary = 256;
  int end_of_document = -1;  // token after each document; -1: none
};

/// What was found and not packed.
struct Skipped {
  std::uint64_t unreadable = 0;  // files and folders
  std::uint64_t binary = 0;      // documents with a NUL byte
  std::uint64_t not_utf8 = 0;    // SentencePiece only
  std::uint64_t empty = 0;       // without a token that has a successor
  std::uint64_t bad_lines = 0;   // .jsonl lines that are no object with a string "text"
  // What max_bytes kept out: of the sources, from the first document that went beyond. Not in meta.json: where the
  // dataset is packed, not known later.
  std::uint64_t beyond_bytes = 0, beyond_files = 0;
  std::uint64_t total() const { return unreadable + binary + not_utf8 + empty + bad_lines; }
  /// "3 binary, 1 empty"; "" when nothing was skipped.
  std::string describe() const;
};

/// One file of the dataset.
struct FileRecord {
  std::string name;
  std::uint64_t bytes = 0;
  std::string hash;  // Hash128 of what follows the 64-byte header (of the whole file for the tokenizer)
};

/// meta.json: everything about a dataset but its tokens and its index.
struct Meta {
  int seq_len = 0;
  TokenizerIdentity tokenizer;
  std::uint64_t documents = 0, tokens = 0, text_bytes = 0, segments = 0;
  std::uint64_t train_rows = 0, validation_rows = 0;  // rows [0, train_rows) and the validation_rows after them
  std::vector<std::uint64_t> bucket_rows;             // train rows by cost bucket, cheapest first
  std::string split = "documents";                    // how the validation part was chosen; or "tail", or "none"
  double validation_fraction = 0;                     // asked for
  std::uint64_t seed = 0;                             // of the documents' order
  std::vector<std::string> sources, extensions;
  std::uint64_t max_bytes = 0;  // of text taken; 0: all
  Skipped skipped;
  std::vector<FileRecord> files;

  std::uint64_t rows() const { return train_rows + validation_rows; }
  /// Share of positions that hold a token, 0 … 1.
  double fill() const;
  /// Identity of the content: over the files' hashes and the shape.
  std::string hash() const;
};

std::string to_json(const Meta& meta);

/// Throws Error naming `path` when the text is not the description of a dataset of this version.
Meta parse_meta(const std::string& text, const std::string& path);

}  // namespace ganymede::data
