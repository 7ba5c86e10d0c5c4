#include "services/data/dataset.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "common/base/error.h"
#include "common/base/hash.h"
#include "services/data/file_writer.h"

namespace ganymede::data {
namespace {

template <class T>
std::span<const T> part(const os::FileMapping& file, std::uint64_t& offset, std::uint64_t count) {
  std::span<const T> values(reinterpret_cast<const T*>(file.data + offset), count);
  offset += count * sizeof(T);
  return values;
}

std::span<const std::byte> content_of(const os::FileMapping& file) {
  return std::as_bytes(std::span(file.data, file.size)).subspan(sizeof(FileHeader));
}

}  // namespace

Dataset::Dataset(std::string folder) : folder_(std::move(folder)) {
  std::string description = folder_ + "/" + meta_name;
  if (!std::filesystem::is_directory(folder_))
    fail_usage("There is no dataset at {}: pack one with `ganymede data pack SOURCE… --to {}`.", folder_, folder_);
  if (!std::filesystem::exists(description))
    fail_usage("{} is not a packed dataset, it has no {}: name a folder that `ganymede data pack` made.", folder_,
               meta_name);
  meta_ = parse_meta(os::read_file(description), description);
  for (const char* name : {tokens_name, index_name, blocks_name}) {
    if (!std::filesystem::exists(folder_ + "/" + name)) damaged(fmt::format("{} is missing", name));
    watches_.emplace_back(name, FileWatch(folder_ + "/" + name));
  }
  for (const FileRecord& file : meta_.files) {
    std::error_code error;
    std::uintmax_t bytes = std::filesystem::file_size(folder_ + "/" + file.name, error);
    if (error) damaged(fmt::format("{} is missing", file.name));
    if (bytes != file.bytes) damaged(fmt::format("{} has {} bytes instead of {}", file.name, bytes, file.bytes));
  }
  open_tokens();
  open_index();
  open_blocks();
}

void Dataset::damaged(const std::string& what) const {
  fail("Dataset {} was damaged after packing ({}): delete the folder and pack it again.", folder_, what);
}

void Dataset::header_damaged(const char* name) const {
  damaged(fmt::format("the header of {} is not as written", name));
}

void Dataset::check_unchanged() const {
  for (const auto& [name, watch] : watches_) {
    FileWatch::Change change = watch.change();
    if (change == FileWatch::Change::content)
      fail(
          "Dataset {} was changed while it is in use ({} was written to): put the old dataset back, then the same "
          "command goes on.",
          folder_, name);
    if (change == FileWatch::Change::none) continue;
    token_blocks_.forget();
    index_blocks_.forget();
  }
}

FileHeader Dataset::open(const char* name, const std::array<char, 8>& magic, os::FileMapping& file) const {
  file = os::FileMapping(folder_ + "/" + name);
  FileHeader header;
  if (file.size < sizeof header) damaged(fmt::format("{} has no header", name));
  std::memcpy(&header, file.data, sizeof header);
  if (header.magic != magic || header.version != dataset_version || header.hash != header_hash(header))
    header_damaged(name);
  return header;
}

void Dataset::open_tokens() {
  FileHeader header = open(tokens_name, tokens_magic, tokens_file_);
  width_ = header.width;
  if ((width_ != 2 && width_ != 4) || header.counts[0] != meta_.tokens ||
      tokens_file_.size != sizeof header + meta_.tokens * width_)
    header_damaged(tokens_name);
}

void Dataset::open_index() {
  FileHeader header = open(index_name, index_magic, index_file_);
  std::array<std::uint64_t, 5> counts = {meta_.documents, meta_.rows(), meta_.segments, meta_.tokens, 0};
  std::uint64_t size = sizeof header + (meta_.documents + 1) * sizeof(std::uint64_t) +
                       (meta_.rows() + 1) * sizeof(RowRecord) + meta_.segments * sizeof(Segment);
  if (header.counts != counts || index_file_.size != size) header_damaged(index_name);
  std::uint64_t offset = sizeof header;
  documents_ = part<std::uint64_t>(index_file_, offset, meta_.documents + 1);
  rows_ = part<RowRecord>(index_file_, offset, meta_.rows() + 1);
  segments_ = part<Segment>(index_file_, offset, meta_.segments);
}

void Dataset::open_blocks() {
  FileHeader header = open(blocks_name, blocks_magic, blocks_file_);
  std::uint64_t of_tokens = blocks_of(tokens_file_.size - sizeof header);
  std::uint64_t of_index = blocks_of(index_file_.size - sizeof header);
  std::array<std::uint64_t, 5> counts = {of_tokens, of_index, 0, 0, 0};
  if (header.counts != counts || blocks_file_.size != sizeof header + (of_tokens + of_index) * sizeof(std::uint64_t))
    header_damaged(blocks_name);
  std::uint64_t offset = sizeof header;
  auto token_hashes = part<std::uint64_t>(blocks_file_, offset, of_tokens);
  token_blocks_ = BlockCheck(content_of(tokens_file_), token_hashes);
  index_blocks_ = BlockCheck(content_of(index_file_), part<std::uint64_t>(blocks_file_, offset, of_index));
}

template <class T>
std::span<const T> Dataset::index_part(std::span<const T> part, const char* what) const {
  if (!index_blocks_.sound(std::as_bytes(part))) damaged(fmt::format("{} in index.bin has another content", what));
  return part;
}

std::uint64_t Dataset::document_begin(std::uint64_t d) const {
  return index_part(documents_.subspan(d, 1), "a document")[0];
}

Row Dataset::row(std::uint64_t i) const {
  GANYMEDE_CHECK(i < meta_.rows(), "row {} of a dataset of {}", i, meta_.rows());
  auto records = index_part(rows_.subspan(i, 2), "a row");
  const RowRecord& record = records[0];
  std::uint64_t first = record.first_segment, end = records[1].first_segment;
  if (first >= end || end > segments_.size()) damaged(fmt::format("row {} has no segments", i));
  auto segments = index_part(segments_.subspan(first, end - first), "a segment");
  Row row{segments, record.cost, record.loss_tokens, record.tokens};
  std::uint64_t tokens = 0, loss_tokens = 0;
  for (const Segment& segment : row.segments) {
    if (segment.document >= meta_.documents) damaged(fmt::format("a segment of row {} has no document", i));
    std::uint64_t begin = document_begin(segment.document), after = document_begin(segment.document + 1);
    bool inside = after <= meta_.tokens && begin <= segment.first && segment.first < after && segment.length > 0 &&
                  segment.length <= after - segment.first;
    if (!inside) damaged(fmt::format("a segment of row {} is outside its document", i));
    tokens += segment.length;
    loss_tokens += segment.length - (segment.first + segment.length == after ? 1 : 0);
  }
  if (tokens != row.tokens || tokens > static_cast<std::uint64_t>(meta_.seq_len) || loss_tokens != row.loss_tokens)
    damaged(fmt::format("the counts of row {} are wrong", i));
  return row;
}

void Dataset::tokens(std::uint64_t first, std::span<std::int32_t> out) const {
  GANYMEDE_CHECK(first + out.size() <= meta_.tokens, "tokens {}+{} of {}", first, out.size(), meta_.tokens);
  auto stored = content_of(tokens_file_).subspan(first * width_, out.size() * width_);
  if (!token_blocks_.sound(stored)) damaged(fmt::format("tokens.bin has another content near token {}", first));
  if (width_ == 2) {
    const auto* narrow = reinterpret_cast<const std::uint16_t*>(stored.data());
    std::copy_n(narrow, out.size(), out.begin());
  } else {
    std::memcpy(out.data(), stored.data(), stored.size());
  }
  for (std::int32_t token : out)
    if (token < 0 || token >= meta_.tokenizer.vocabulary)
      damaged(fmt::format("token {} is not in its vocabulary of {}", token, meta_.tokenizer.vocabulary));
}

std::unique_ptr<Tokenizer> Dataset::open_tokenizer() const {
  if (meta_.tokenizer.kind == "bytes") return make_bytes_tokenizer();
  if (meta_.tokenizer.kind != "sentencepiece")
    fail_usage("Dataset {} was made with a tokenizer of kind \"{}\", which this program does not know.", folder_,
               meta_.tokenizer.kind);
  std::string path = folder_ + "/" + tokenizer_name;
  std::string model = os::read_file(path);
  if (hash128(model).hex() != meta_.tokenizer.hash) damaged("tokenizer.model has another content");
  return make_sentencepiece_tokenizer(std::move(model), meta_.tokenizer.origin, path);
}

void Dataset::verify() const {
  for (const FileRecord& file : meta_.files) {
    os::FileMapping content(folder_ + "/" + file.name);
    std::uint64_t skip = file.name == tokenizer_name ? 0 : sizeof(FileHeader);
    auto bytes = std::as_bytes(std::span(content.data, content.size));
    if (content.size < skip || hash128(bytes.subspan(skip)).hex() != file.hash)
      damaged(fmt::format("{} has another content", file.name));
  }
}

}  // namespace ganymede::data
