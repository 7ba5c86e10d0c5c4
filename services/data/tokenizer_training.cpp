#include "services/data/tokenizer_training.h"

#include <sentencepiece_trainer.h>

#include <algorithm>
#include <unordered_map>

#include "common/base/error.h"
#include "common/base/random.h"

namespace ganymede::data {
namespace {

constexpr std::size_t longest_line = 4096;  // bytes; longer ones are cut, the trainer would drop them
constexpr int smallest_vocabulary = 300;    // 256 bytes, 3 control pieces, newline and the commonest characters

bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

/// Feeds lines to the trainer.
class Lines final : public sentencepiece::SentenceIterator {
 public:
  explicit Lines(const std::vector<std::string>& lines) : lines_(lines) {}
  bool done() const override { return next_ >= lines_.size(); }
  void Next() override { ++next_; }
  const std::string& value() const override { return lines_[next_]; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  const std::vector<std::string>& lines_;
  std::size_t next_ = 0;
};

/// SentencePiece's reason without the place in its own sources.
std::string reason(const sentencepiece::util::Status& status) {
  std::string text = status.ToString();
  std::size_t end = text.rfind("] ");
  return end == std::string::npos || end + 2 >= text.size() ? text : text.substr(end + 2);
}

}  // namespace

TrainingSample::TrainingSample(std::uint64_t corpus_bytes, std::uint64_t limit, std::uint64_t seed)
    : share_(corpus_bytes <= limit ? 1.0 : static_cast<double>(limit) / static_cast<double>(corpus_bytes)),
      limit_(limit),
      seed_(seed) {}

void TrainingSample::add(std::string_view document) {
  while (!document.empty()) {
    std::size_t end = std::min(document.find('\n'), document.size() - 1) + 1;
    std::string_view line = document.substr(0, end);
    document.remove_prefix(end);
    while (line.size() > longest_line) {
      std::size_t cut = longest_line;
      while (cut > longest_line / 2 && continues_character(line[cut])) --cut;
      add_line(line.substr(0, cut));
      line.remove_prefix(cut);
    }
    add_line(line);
  }
}

void TrainingSample::add_line(std::string_view line) {
  std::uint64_t place = place_++;
  if (bytes_ + line.size() > limit_ + limit_ / 8) return;
  if (share_ < 1.0 && uniform(seed_, /*stream=*/0x6c696e6573, place) >= share_) return;
  bytes_ += line.size();
  lines_.emplace_back(line);
}

std::string train_tokenizer(const std::vector<std::string>& lines, int vocabulary) {
  if (vocabulary < smallest_vocabulary)
    fail_usage("A trained tokenizer needs a vocabulary of at least {}, not {}.", smallest_vocabulary, vocabulary);
  std::unordered_map<std::string, std::string> settings = {
      {"model_type", "bpe"},
      {"vocab_size", std::to_string(vocabulary)},
      {"normalization_rule_name", "identity"},
      {"remove_extra_whitespaces", "false"},
      {"add_dummy_prefix", "false"},
      {"allow_whitespace_only_pieces", "true"},
      {"user_defined_symbols", "\n"},
      {"byte_fallback", "true"},
      {"split_digits", "true"},
      {"character_coverage", "0.9995"},
      {"max_sentence_length", std::to_string(2 * longest_line)},
      {"num_threads", "1"},  // the order of its sums would depend on their number
      {"minloglevel", "2"},
  };
  if (lines.empty()) fail_usage("There is no text to train a tokenizer on: name sources with text.");
  Lines input(lines);
  std::string model;
  auto status = sentencepiece::SentencePieceTrainer::Train(settings, &input, &model);
  if (!status.ok())
    fail_usage(
        "a tokenizer of {} pieces cannot be trained on {} lines of text ({}): give more text or a smaller "
        "vocabulary.",
        vocabulary, lines.size(), reason(status));
  return model;
}

}  // namespace ganymede::data
