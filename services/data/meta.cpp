#include "services/data/meta.h"

#include <nlohmann/json.hpp>

#include "common/base/error.h"
#include "common/base/hash.h"
#include "common/base/run_command.h"
#include "services/data/dataset_format.h"

namespace ganymede::data {

using nlohmann::json;

std::string Skipped::describe() const {
  const std::pair<std::uint64_t, const char*> kinds[] = {{unreadable, "unreadable"},
                                                         {binary, "binary"},
                                                         {not_utf8, "not UTF-8"},
                                                         {empty, "empty"},
                                                         {bad_lines, "bad lines"}};
  std::string text;
  for (auto [count, kind] : kinds)
    if (count > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, kind);
  return text;
}

double Meta::fill() const {
  return rows() == 0 ? 0 : static_cast<double>(tokens) / (static_cast<double>(rows()) * seq_len);
}

std::string Meta::hash() const {
  std::string all = fmt::format("{} {} {} {}", seq_len, train_rows, validation_rows, tokenizer.vocabulary);
  for (const FileRecord& file : files) all += fmt::format(" {} {} {}", file.name, file.bytes, file.hash);
  return hash128(all).hex();
}

std::string to_json(const Meta& meta) {
  json files = json::object();
  for (const FileRecord& file : meta.files) files[file.name] = {{"bytes", file.bytes}, {"hash", file.hash}};
  const Skipped& skipped = meta.skipped;
  json root = {{"format", "ganymede dataset"},
               {"version", dataset_version},
               {"hash", meta.hash()},
               {"seq_len", meta.seq_len},
               {"tokenizer",
                {{"kind", meta.tokenizer.kind},
                 {"origin", meta.tokenizer.origin},
                 {"hash", meta.tokenizer.hash},
                 {"vocabulary", meta.tokenizer.vocabulary},
                 {"end_of_document", meta.tokenizer.end_of_document}}},
               {"documents", meta.documents},
               {"tokens", meta.tokens},
               {"text_bytes", meta.text_bytes},
               {"segments", meta.segments},
               {"train_rows", meta.train_rows},
               {"validation_rows", meta.validation_rows},
               {"bucket_rows", meta.bucket_rows},
               {"split", meta.split},
               {"validation_fraction", meta.validation_fraction},
               {"seed", meta.seed},
               {"sources", meta.sources},
               {"extensions", meta.extensions},
               {"max_bytes", meta.max_bytes},
               {"skipped",
                {{"unreadable", skipped.unreadable},
                 {"binary", skipped.binary},
                 {"not_utf8", skipped.not_utf8},
                 {"empty", skipped.empty},
                 {"bad_lines", skipped.bad_lines}}},
               {"files", files}};
  return root.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

namespace {

Meta from_json(const json& root) {
  Meta meta;
  meta.seq_len = root.at("seq_len").get<int>();
  const json& tokenizer = root.at("tokenizer");
  meta.tokenizer.kind = tokenizer.at("kind").get<std::string>();
  meta.tokenizer.origin = tokenizer.at("origin").get<std::string>();
  meta.tokenizer.hash = tokenizer.at("hash").get<std::string>();
  meta.tokenizer.vocabulary = tokenizer.at("vocabulary").get<int>();
  meta.tokenizer.end_of_document = tokenizer.at("end_of_document").get<int>();
  meta.documents = root.at("documents").get<std::uint64_t>();
  meta.tokens = root.at("tokens").get<std::uint64_t>();
  meta.text_bytes = root.at("text_bytes").get<std::uint64_t>();
  meta.segments = root.at("segments").get<std::uint64_t>();
  meta.train_rows = root.at("train_rows").get<std::uint64_t>();
  meta.validation_rows = root.at("validation_rows").get<std::uint64_t>();
  meta.bucket_rows = root.at("bucket_rows").get<std::vector<std::uint64_t>>();
  meta.split = root.at("split").get<std::string>();
  meta.validation_fraction = root.at("validation_fraction").get<double>();
  meta.seed = root.at("seed").get<std::uint64_t>();
  meta.sources = root.at("sources").get<std::vector<std::string>>();
  meta.extensions = root.at("extensions").get<std::vector<std::string>>();
  meta.max_bytes = root.at("max_bytes").get<std::uint64_t>();
  const json& skipped = root.at("skipped");
  meta.skipped.unreadable = skipped.at("unreadable").get<std::uint64_t>();
  meta.skipped.binary = skipped.at("binary").get<std::uint64_t>();
  meta.skipped.not_utf8 = skipped.at("not_utf8").get<std::uint64_t>();
  meta.skipped.empty = skipped.at("empty").get<std::uint64_t>();
  meta.skipped.bad_lines = skipped.at("bad_lines").get<std::uint64_t>();
  for (const auto& [name, file] : root.at("files").items())
    meta.files.push_back({name, file.at("bytes").get<std::uint64_t>(), file.at("hash").get<std::string>()});
  return meta;
}

/// What later arithmetic relies on.
bool plausible(const Meta& meta) {
  constexpr std::uint64_t largest = std::uint64_t{1} << 48;
  std::uint64_t in_buckets = 0;
  for (std::uint64_t rows : meta.bucket_rows) {
    if (rows > largest) return false;
    in_buckets += rows;
  }
  return meta.seq_len > 0 && meta.tokenizer.vocabulary > 0 && meta.documents < largest && meta.tokens < largest &&
         meta.segments < largest && meta.train_rows < largest && meta.validation_rows < largest &&
         in_buckets == meta.train_rows;
}

}  // namespace

Meta parse_meta(const std::string& text, const std::string& path) {
  Meta meta;
  try {
    json root = json::parse(text);
    if (root.at("format") != "ganymede dataset") fail_usage("{} does not describe a packed dataset.", path);
    auto version = root.at("version").get<std::uint32_t>();
    if (version != dataset_version)
      fail_usage("{} is of dataset version {}, this program reads version {}: pack the dataset again.", path, version,
                 dataset_version);
    meta = from_json(root);
    if (!plausible(meta) || root.at("hash") != meta.hash())
      fail("{} contradicts itself, it was damaged after packing: delete the dataset's folder and pack it again.", path);
  } catch (const json::exception& error) {
    fail("{} is damaged ({}): delete the dataset's folder and pack it again.", path, sentence_of(error));
  }
  return meta;
}

}  // namespace ganymede::data
