#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ganymede::data {

/// Collects lines of documents to train a tokenizer on, at most about `limit` bytes in all: of a corpus of
/// `corpus_bytes` each line is taken with probability limit / corpus_bytes, by a hash of its place, so the sample is
/// spread over the corpus and the same every time.
class TrainingSample {
 public:
  TrainingSample(std::uint64_t corpus_bytes, std::uint64_t limit, std::uint64_t seed);
  void add(std::string_view document);
  const std::vector<std::string>& lines() const { return lines_; }

 private:
  void add_line(std::string_view line);
  double share_;
  std::uint64_t limit_, seed_, bytes_ = 0, place_ = 0;
  std::vector<std::string> lines_;
};

/// Most text that the trainer reads: enough for vocabularies of some ten thousand pieces, a few seconds of work.
constexpr std::uint64_t training_bytes = 6u << 20;

/// Trains a BPE SentencePiece model of `vocabulary` pieces that keeps every byte of a text (no normalisation, blanks
/// and newlines are pieces, unknown characters fall back to bytes) and returns the model file's content. The same
/// lines give the same bytes. Throws Error(usage) when the text is too small for the vocabulary.
std::string train_tokenizer(const std::vector<std::string>& lines, int vocabulary);

}  // namespace ganymede::data
