#include "common/base/error.h"
#include "common/base/hash.h"
#include "common/base/log.h"
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

std::string quoted(const std::vector<std::string>& texts) {
  return fmt::format("[\"{}\"]", fmt::join(texts, "\", \""));
}

/// A configuration that names the dataset's sources says how it is made; one made otherwise must not be taken for it
/// silently. A dataset of other sources was packed by the user, who named its folder.
void check_made_as_asked(const Dataset& dataset, const config::Data& asked) {
  const Meta& meta = dataset.meta();
  if (asked.sources.empty()) return;
  if (meta.sources != asked.sources) {
    log::warn("dataset {} was packed from other sources ({}) than data.sources ({}): it is used as it is",
              dataset.folder(), fmt::join(meta.sources, ", "), fmt::join(asked.sources, ", "));
    return;
  }
  auto refuse = [&](const char* key, const std::string& made_with, const std::string& now) {
    fail_usage(
        "Dataset {} was packed with data.{} = {}, but it is {} now: set it back, or remove the dataset to pack it "
        "again, or name another data.path.",
        dataset.folder(), key, made_with, now);
  };
  if (meta.extensions != asked.extensions) refuse("extensions", quoted(meta.extensions), quoted(asked.extensions));
  if (meta.max_bytes != static_cast<std::uint64_t>(asked.max_bytes))
    refuse("max_bytes", std::to_string(meta.max_bytes), std::to_string(asked.max_bytes));
  if (meta.validation_fraction != asked.validation_fraction)
    refuse("validation_fraction", fmt::to_string(meta.validation_fraction), fmt::to_string(asked.validation_fraction));
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
  check_made_as_asked(dataset, config.data);
}

}  // namespace ganymede::data
