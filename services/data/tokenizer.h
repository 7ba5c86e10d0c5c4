#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "services/data/meta.h"

namespace ganymede::data {

/// Text to token ids and back. All calls but none of the construction are thread-safe.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  virtual const TokenizerIdentity& identity() const = 0;
  /// Appends the ids of `text` (without an end-of-document token).
  virtual void encode(std::string_view text, std::vector<std::uint32_t>& ids) const = 0;
  /// The bytes that one id stands for; `first`: nothing was decoded before it. The end-of-document token and other
  /// control ids stand for nothing. Throws Error(usage) when the id is not in the vocabulary.
  virtual std::string bytes_of(std::uint32_t id, bool first) const = 0;
  /// Whether text must be valid UTF-8.
  virtual bool needs_utf8() const = 0;
  /// Content of the file that opens it again; empty when there is none.
  virtual const std::string& model() const = 0;
};

/// One token a byte; byte 0 ends a document (text with NUL bytes is never packed).
std::unique_ptr<Tokenizer> make_bytes_tokenizer();

/// The SentencePiece model with this content. `origin` and `name` describe it ("file", its path). Throws
/// Error(usage) when it is not one.
std::unique_ptr<Tokenizer> make_sentencepiece_tokenizer(std::string model, std::string origin, const std::string& name);

/// Content of a SentencePiece model file. Throws Error(usage) when it cannot be read.
std::string read_tokenizer_model(const std::string& file);

/// All bytes of `ids`.
std::string decode(const Tokenizer& tokenizer, const std::vector<std::uint32_t>& ids);

}  // namespace ganymede::data
