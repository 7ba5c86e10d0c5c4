#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <type_traits>

/// The records of a dataset's binary files, as they lie on disk (little-endian; grammar in README.md).
namespace ganymede::data {

static_assert(std::endian::native == std::endian::little, "dataset files are mapped as they are");

constexpr std::uint32_t dataset_version = 2;
constexpr const char* meta_name = "meta.json";
constexpr const char* tokens_name = "tokens.bin";
constexpr const char* index_name = "index.bin";
constexpr const char* blocks_name = "blocks.bin";
constexpr const char* tokenizer_name = "tokenizer.model";

/// Rows whose attention costs lie in the same sixteenth of seq_len² count as equally expensive.
constexpr int cost_buckets = 16;

/// First 64 bytes of tokens.bin, index.bin and blocks.bin.
struct FileHeader {
  std::array<char, 8> magic{};
  std::uint32_t version = dataset_version;
  std::uint32_t width = 0;                // bytes a token; 0 in the other files
  std::array<std::uint64_t, 5> counts{};  // tokens.bin: tokens; index.bin: documents, rows, segments, tokens;
                                          // blocks.bin: blocks of tokens.bin, of index.bin
  std::uint64_t hash = 0;                 // hash64 of the 56 bytes above
};
static_assert(sizeof(FileHeader) == 64 && std::is_trivially_copyable_v<FileHeader>);

constexpr std::array<char, 8> tokens_magic = {'G', 'N', 'Y', 'M', 'T', 'O', 'K', 'S'};
constexpr std::array<char, 8> index_magic = {'G', 'N', 'Y', 'M', 'I', 'N', 'D', 'X'};
constexpr std::array<char, 8> blocks_magic = {'G', 'N', 'Y', 'M', 'B', 'L', 'K', 'S'};

/// A run of tokens of one document inside a row.
struct Segment {
  std::uint64_t first = 0;     // token in tokens.bin
  std::uint32_t length = 0;    // > 0
  std::uint32_t document = 0;  // index of the document, in the order in which the sources were read
  bool operator==(const Segment&) const = default;
};
static_assert(sizeof(Segment) == 16);

/// A row; its segments end where those of the next record begin. The table has one record more than rows.
struct RowRecord {
  std::uint64_t first_segment = 0;
  std::uint64_t cost = 0;         // sum of squared segment lengths
  std::uint32_t loss_tokens = 0;  // positions that have a target
  std::uint32_t tokens = 0;       // ≤ seq_len; the rest is padding
};
static_assert(sizeof(RowRecord) == 24);

}  // namespace ganymede::data
