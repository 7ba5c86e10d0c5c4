#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <vector>

#include "common/base/error.h"
#include "common/base/text.h"
#include "services/data/batch.h"
#include "services/data/commands.h"
#include "services/data/dataset.h"
#include "services/data/packing.h"

namespace ganymede::data {
namespace {

using nlohmann::json;

std::string counted(std::uint64_t value) { return with_commas(static_cast<std::int64_t>(value)); }

/// Control characters of a document must not reach the terminal.
std::string printable(const std::string& text) {
  std::string out;
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7f)
      out += fmt::format("\\x{:02x}", byte);
    else
      out += c;
  }
  return out;
}

std::string segment_text(const Dataset& dataset, const Tokenizer& tokenizer, const Segment& segment) {
  std::vector<std::int32_t> tokens(segment.length);
  dataset.tokens(segment.first, tokens);
  return decode(tokenizer, {tokens.begin(), tokens.end()});
}

void print_row(const Dataset& dataset, std::uint64_t i, bool as_json) {
  if (i >= dataset.meta().rows())
    fail_usage("Row {} does not exist: {} has rows 0 to {}.", i, dataset.folder(), dataset.meta().rows() - 1);
  auto tokenizer = dataset.open_tokenizer();
  Row row = dataset.row(i);
  json segments = json::array();
  for (const Segment& segment : row.segments) {
    std::uint64_t from = segment.first - dataset.document_begin(segment.document);
    std::string text = segment_text(dataset, *tokenizer, segment);
    segments.push_back({{"document", segment.document}, {"from", from}, {"length", segment.length}, {"text", text}});
    if (!as_json)
      fmt::print("── document {}, tokens {} to {} ──\n{}\n", segment.document, from, from + segment.length,
                 printable(text));
  }
  const char* part = i < dataset.meta().train_rows ? "train" : "validation";
  if (!as_json) {
    fmt::print("── row {} of {} ({}): {} tokens, {} with a target, cost {} ──\n", i, dataset.meta().rows(), part,
               row.tokens, row.loss_tokens, row.cost);
    return;
  }
  json object = {{"row", i},         {"part", part},        {"tokens", row.tokens}, {"loss_tokens", row.loss_tokens},
                 {"cost", row.cost}, {"segments", segments}};
  fmt::print("{}\n", object.dump(-1, ' ', false, json::error_handler_t::replace));
}

void print_costs(const Meta& meta) {
  fmt::print("cost of training rows (sum of squared lengths of their pieces, 100% = one document fills the row):\n");
  std::uint64_t most = *std::max_element(meta.bucket_rows.begin(), meta.bucket_rows.end());
  double step = 100.0 / static_cast<double>(meta.bucket_rows.size());
  for (std::size_t i = 0; i < meta.bucket_rows.size(); ++i) {
    if (meta.bucket_rows[i] == 0) continue;
    auto bar = static_cast<std::size_t>(40 * meta.bucket_rows[i] / std::max<std::uint64_t>(most, 1));
    fmt::print("  {:3.0f} to {:3.0f}%  {:>11}  {}\n", static_cast<double>(i) * step, static_cast<double>(i + 1) * step,
               counted(meta.bucket_rows[i]), std::string(bar, '#'));
  }
}

void print_overview(const Dataset& dataset) {
  const Meta& meta = dataset.meta();
  fmt::print("{}\n", dataset.folder());
  fmt::print("  tokenizer   {} (vocabulary {}{}{})\n", meta.tokenizer.origin, meta.tokenizer.vocabulary,
             meta.tokenizer.hash.empty() ? "" : ", hash ", meta.tokenizer.hash);
  fmt::print("  documents   {} ({} of text)\n", counted(meta.documents),
             human_bytes(static_cast<double>(meta.text_bytes)));
  fmt::print("  tokens      {}\n", counted(meta.tokens));
  fmt::print("  rows        {} of {} tokens, {:.1f}% full, {} pieces of documents\n", counted(meta.rows()),
             meta.seq_len, 100 * meta.fill(), counted(meta.segments));
  fmt::print("  training    {} rows\n", counted(meta.train_rows));
  fmt::print("  validation  {} rows (chosen by: {})\n", counted(meta.validation_rows), meta.split);
  fmt::print("  skipped     {}\n", meta.skipped.total() == 0 ? "nothing" : meta.skipped.describe());
  fmt::print("  sources     {}\n", fmt::join(meta.sources, " "));
  fmt::print("  hash        {}\n", meta.hash());
  print_costs(meta);
}

void print_verified(const Meta& meta) {
  std::uint64_t bytes = 0;
  for (const FileRecord& file : meta.files) bytes += file.bytes;
  fmt::print("verified: {} in {} files, every hash is that of the packing\n", human_bytes(static_cast<double>(bytes)),
             meta.files.size());
}

}  // namespace

void inspect_command(const InspectOptions& options) {
  Dataset dataset(options.dataset);
  if (options.verify) dataset.verify();
  if (options.verify && !options.json) print_verified(dataset.meta());
  if (options.row) {
    print_row(dataset, *options.row, options.json);
  } else if (options.json) {
    json object = json::parse(to_json(dataset.meta()));
    object["folder"] = dataset.folder();
    object["fill"] = dataset.meta().fill();
    fmt::print("{}\n", object.dump());
  } else {
    print_overview(dataset);
  }
}

void rows_command(const RowsOptions& options) {
  Dataset dataset(options.dataset);
  bool train = options.split == "train";
  if (!train && options.split != "validation")
    fail_usage("\"{}\" is no part of a dataset: \"train\" and \"validation\" are.", options.split);
  std::uint64_t begin = train ? 0 : dataset.meta().train_rows;
  std::uint64_t rows = train ? dataset.meta().train_rows : dataset.meta().validation_rows;
  auto seq_len = static_cast<std::size_t>(dataset.meta().seq_len);
  std::vector<std::int32_t> tokens(seq_len), targets(seq_len), documents(seq_len);
  std::uint64_t first = std::min(options.first, rows);
  for (std::uint64_t i = first; i < first + std::min(options.count, rows - first); ++i) {
    fill_row(dataset, begin + i, {tokens, targets, documents});
    json object = {{"row", begin + i},
                   {"tokens", tokens},
                   {"targets", targets},
                   {"documents", documents},
                   {"loss_tokens", dataset.row(begin + i).loss_tokens}};
    fmt::print("{}\n", object.dump());
  }
}

}  // namespace ganymede::data
