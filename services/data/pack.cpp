#include "services/data/pack.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "common/base/error.h"
#include "services/data/documents.h"
#include "services/data/file_writer.h"
#include "services/data/interruption.h"
#include "services/data/output_folder.h"
#include "services/data/packing.h"
#include "services/data/progress.h"
#include "services/data/sources.h"
#include "services/data/token_writer.h"
#include "services/data/tokenizer.h"
#include "services/data/tokenizer_training.h"

namespace ganymede::data {
namespace {

constexpr double wait_seconds = 3600;

int trained_vocabulary(const std::string& tokenizer) {
  int size = 0;
  auto digits = tokenizer.substr(std::string("train:").size());
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), size);
  if (error != std::errc() || end != digits.data() + digits.size())
    fail_usage("\"{}\" names no tokenizer: after \"train:\" comes the size of the vocabulary.", tokenizer);
  return size;
}

/// At most; what is skipped does not count towards max_bytes.
std::uint64_t bytes_to_read(const SourceFiles& sources, const PackOptions& options) {
  return options.max_bytes == 0 ? sources.bytes() : std::min(sources.bytes(), options.max_bytes);
}

std::unique_ptr<Tokenizer> train(const SourceFiles& sources, const PackOptions& options) {
  int vocabulary = trained_vocabulary(options.tokenizer);
  std::uint64_t bytes = bytes_to_read(sources, options);
  TrainingSample sample(bytes, training_bytes, options.seed);
  Progress progress("reading text for the tokenizer", bytes);
  read_documents(sources, {options.max_bytes, true}, [&](std::string&& text, std::uint64_t read) {
    stop_if_interrupted();
    progress.at(read);
    sample.add(text);
  });
  Progress training(fmt::format("training a tokenizer of {} pieces", vocabulary), 0);
  training.show();
  return make_sentencepiece_tokenizer(train_tokenizer(sample.lines(), vocabulary), options.tokenizer,
                                      "the trained tokenizer");
}

std::unique_ptr<Tokenizer> open_tokenizer(const SourceFiles& sources, const PackOptions& options) {
  if (options.tokenizer == "bytes") return make_bytes_tokenizer();
  if (options.tokenizer.starts_with("train:")) return train(sources, options);
  return make_sentencepiece_tokenizer(read_tokenizer_model(options.tokenizer), "file", options.tokenizer);
}

std::string why_none(const Skipped& skipped, const PackOptions& options) {
  if (skipped.total() > 0) return skipped.describe();
  return options.max_bytes > 0 ? "max-bytes is smaller than the first one" : "no text in them";
}

struct Split {
  PackedRows train, validation;
  std::string how = "none";
};

/// Rows of each part. Where the hash of texts leaves a part without documents (few, large ones), the last rows of the
/// whole are held out instead.
Split split_rows(const DocumentTable& documents, const PackOptions& options) {
  auto pack_part = [&](const std::vector<std::uint32_t>& part) {
    return pack_rows(documents.begin, shuffled(part, options.seed), static_cast<std::uint32_t>(options.seq_len));
  };
  Split split;
  if (!documents.train.empty() && !documents.validation.empty()) {
    split.train = pack_part(documents.train);
    split.validation = pack_part(documents.validation);
    split.how = "documents";
    return split;
  }
  PackedRows all = pack_part(documents.train.empty() ? documents.validation : documents.train);
  auto kept_back =
      static_cast<std::uint64_t>(std::ceil(static_cast<double>(all.count()) * options.validation_fraction));
  if (all.count() < 2) kept_back = 0;
  if (kept_back > 0) split.how = "tail";
  for (std::uint64_t i = 0; i < all.count(); ++i)
    (i < all.count() - kept_back ? split.train : split.validation).append(all, i);
  return split;
}

/// Adds the file's record to `meta` and returns the hashes of its blocks.
std::vector<std::uint64_t> write_index(const std::string& path, const DocumentTable& documents, const PackedRows& rows,
                                       Meta& meta) {
  FileWriter file(path, index_name, true);
  file.write_all(std::span<const std::uint64_t>(documents.begin));
  file.write_all(std::span<const RowRecord>(rows.rows));
  file.write_all(std::span<const Segment>(rows.segments));
  FileHeader header{.magic = index_magic};
  header.counts = {documents.count(), rows.count(), rows.segments.size(), documents.tokens(), 0};
  meta.files.push_back(file.finish(header));
  return file.block_hashes();
}

FileRecord write_blocks(const std::string& path, const std::vector<std::uint64_t>& tokens,
                        const std::vector<std::uint64_t>& index) {
  FileWriter file(path, blocks_name, true);
  file.write_all(std::span(tokens));
  file.write_all(std::span(index));
  FileHeader header{.magic = blocks_magic};
  header.counts = {tokens.size(), index.size(), 0, 0, 0};
  return file.finish(header);
}

/// Cuts the documents into rows and writes the index. Returns the hashes of its blocks.
std::vector<std::uint64_t> write_rows(const OutputFolder& folder, const DocumentTable& documents,
                                      const PackOptions& options, Meta& meta) {
  Split split = split_rows(documents, options);
  PackedRows rows = sorted_by_cost(split.train, static_cast<std::uint32_t>(options.seq_len), meta.bucket_rows);
  meta.split = split.how;
  meta.train_rows = rows.count();
  meta.validation_rows = split.validation.count();
  for (std::uint64_t i = 0; i < split.validation.count(); ++i) rows.append(split.validation, i);
  meta.segments = rows.segments.size();
  if (meta.train_rows < std::max<std::uint64_t>(options.rows_per_step, 1))
    fail_usage(
        "The sources give {} training rows of {} tokens, a step takes {}: give more text, a smaller seq_len or "
        "fewer rows_per_step.",
        meta.train_rows, options.seq_len, std::max<std::uint64_t>(options.rows_per_step, 1));
  return write_index(folder.file(index_name), documents, rows, meta);
}

Skipped write_tokens(TokenWriter& writer, const SourceFiles& sources, const PackOptions& options, bool utf8_only) {
  Progress progress("packing", bytes_to_read(sources, options));
  return read_documents(sources, {options.max_bytes, utf8_only}, [&](std::string&& text, std::uint64_t read) {
    stop_if_interrupted();
    progress.at(read);
    writer.add(std::move(text));
  });
}

SourceFiles find_files(const PackOptions& options) {
  if (options.sources.empty()) fail_usage("No sources are named: give text files, .jsonl files or folders.");
  SourceFiles files = find_sources(options.sources, options.extensions);
  if (files.files.empty())
    fail_usage("The sources hold no file that ends in {}: name other sources or other extensions.",
               fmt::join(options.extensions, ", "));
  return files;
}

}  // namespace

PackOptions pack_options(const config::Config& config) {
  PackOptions options;
  options.sources = config.data.sources;
  options.to = config.data.path;
  options.tokenizer = config.data.tokenizer;
  options.seq_len = config.data.seq_len;
  options.extensions = config.data.extensions;
  options.max_bytes = static_cast<std::uint64_t>(config.data.max_bytes);
  options.validation_fraction = config.data.validation_fraction;
  options.seed = config.run.seed;
  options.rows_per_step = static_cast<std::uint64_t>(config.data.rows_per_step);
  options.wait_for_other = true;
  return options;
}

Meta pack(const PackOptions& options) {
  OutputFolder folder(options.to, Deadline::after_seconds(options.wait_for_other ? wait_seconds : 0));
  if (OutputFolder::taken(options.to))
    fail_usage("{} exists already: remove it, or pack to another place.", options.to);
  SourceFiles sources = find_files(options);
  std::unique_ptr<Tokenizer> tokenizer = open_tokenizer(sources, options);

  Meta meta;
  meta.seq_len = options.seq_len;
  meta.tokenizer = tokenizer->identity();
  meta.validation_fraction = options.validation_fraction;
  meta.seed = options.seed;
  meta.sources = options.sources;
  meta.extensions = options.extensions;
  meta.max_bytes = options.max_bytes;

  TokenWriter writer(folder.file(tokens_name), *tokenizer, options.validation_fraction);
  meta.skipped = write_tokens(writer, sources, options, tokenizer->needs_utf8());
  meta.files.push_back(writer.finish());
  const DocumentTable& documents = writer.documents();
  meta.skipped.empty += documents.empty;
  meta.documents = documents.count();
  meta.tokens = documents.tokens();
  meta.text_bytes = documents.text_bytes;
  if (documents.count() == 0)
    fail_usage("The {} files of the sources hold no document that can be packed ({}).", sources.files.size(),
               why_none(meta.skipped, options));

  std::vector<std::uint64_t> index = write_rows(folder, documents, options, meta);
  meta.files.push_back(write_blocks(folder.file(blocks_name), writer.block_hashes(), index));
  if (!tokenizer->model().empty()) {
    FileWriter model(folder.file(tokenizer_name), tokenizer_name, false);
    model.write(tokenizer->model());
    meta.files.push_back(model.finish());
  }
  std::sort(meta.files.begin(), meta.files.end(), [](auto& a, auto& b) { return a.name < b.name; });
  FileWriter description(folder.file(meta_name), meta_name, false);
  description.write(to_json(meta));
  description.finish();
  stop_if_interrupted();
  folder.publish();
  return meta;
}

}  // namespace ganymede::data
