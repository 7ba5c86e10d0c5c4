#include "common/base/error.h"
#include "common/base/hash.h"
#include "services/data/dataset.h"

namespace ganymede::data {
namespace {

std::string describe(const TokenizerIdentity& tokenizer) {
  if (tokenizer.origin == "file") return fmt::format("the SentencePiece model with hash {}", tokenizer.hash);
  return fmt::format("\"{}\"", tokenizer.origin);
}

/// A trained tokenizer is named by "train:N" or by a file with the same content.
bool same_tokenizer(const TokenizerIdentity& made_with, const std::string& asked) {
  if (asked == "bytes" || asked.starts_with("train:")) return made_with.origin == asked;
  return made_with.kind == "sentencepiece" && made_with.hash == hash128(read_tokenizer_model(asked)).hex();
}

}  // namespace

void check_matches(const Dataset& dataset, const config::Config& config) {
  const Meta& meta = dataset.meta();
  const std::string way_out = "set it to what the dataset has, or name another data.path to pack a new one";
  if (!same_tokenizer(meta.tokenizer, config.data.tokenizer))
    fail_usage("Dataset {} was packed with tokenizer {}, but data.tokenizer is \"{}\": {}.", dataset.folder(),
               describe(meta.tokenizer), config.data.tokenizer, way_out);
  if (meta.seq_len != config.data.seq_len)
    fail_usage("Dataset {} was packed into rows of {} tokens, but data.seq_len is {}: {}.", dataset.folder(),
               meta.seq_len, config.data.seq_len, way_out);
  if (meta.tokenizer.vocabulary > config.model.vocabulary)
    fail_usage("Dataset {} has a vocabulary of {} tokens, but model.vocabulary is {}: make it at least {}.",
               dataset.folder(), meta.tokenizer.vocabulary, config.model.vocabulary, meta.tokenizer.vocabulary);
}

}  // namespace ganymede::data
