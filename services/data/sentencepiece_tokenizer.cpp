#include <sentencepiece_processor.h>

#include <charconv>

#include "common/base/error.h"
#include "common/base/hash.h"
#include "services/data/tokenizer.h"

namespace ganymede::data {
namespace {

constexpr std::string_view blank_mark = "\xe2\x96\x81";  // U+2581, how SentencePiece writes a blank

class SentencePieceTokenizer final : public Tokenizer {
 public:
  SentencePieceTokenizer(std::string model, std::string origin, const std::string& name) : model_(std::move(model)) {
    auto status = processor_.LoadFromSerializedProto(model_);
    if (!status.ok() || processor_.GetPieceSize() <= 0)
      fail_usage(
          "{} is not a SentencePiece model: name a .model file that spm_train or `data pack --train-tokenizer` made.",
          name);
    identity_ = {"sentencepiece", std::move(origin), hash128(model_).hex(), processor_.GetPieceSize(),
                 processor_.eos_id()};
    std::vector<std::string> pieces;
    // Models may put a blank before the text; it is not part of what was encoded.
    adds_blank_ = processor_.Encode("a", &pieces).ok() && !pieces.empty() && pieces[0].starts_with(blank_mark);
  }

  const TokenizerIdentity& identity() const override { return identity_; }

  void encode(std::string_view text, std::vector<std::uint32_t>& ids) const override {
    std::vector<int> pieces;
    auto status = processor_.Encode({text.data(), text.size()}, &pieces);
    if (!status.ok()) fail("SentencePiece cannot encode a text of {} bytes: {}", text.size(), status.ToString());
    ids.insert(ids.end(), pieces.begin(), pieces.end());
  }

  std::string bytes_of(std::uint32_t id, bool first) const override {
    if (id >= static_cast<std::uint32_t>(identity_.vocabulary))
      fail_usage("Token {} is not in the vocabulary of {} pieces.", id, identity_.vocabulary);
    int piece_id = static_cast<int>(id);
    if (processor_.IsControl(piece_id) || processor_.IsUnused(piece_id)) return "";
    if (processor_.IsUnknown(piece_id)) return " \xe2\x81\x87 ";  // as SentencePiece itself decodes it
    const std::string& piece = processor_.IdToPiece(piece_id);
    if (processor_.IsByte(piece_id)) return std::string(1, byte_of(piece));
    std::string text = with_blanks(piece);
    if (first && adds_blank_ && text.starts_with(' ')) text.erase(0, 1);
    return text;
  }

  bool needs_utf8() const override { return true; }
  const std::string& model() const override { return model_; }

 private:
  /// Of a piece "<0x41>".
  static char byte_of(const std::string& piece) {
    unsigned value = 0;
    if (piece.size() == 6) std::from_chars(piece.data() + 3, piece.data() + 5, value, 16);
    return static_cast<char>(value);
  }

  static std::string with_blanks(const std::string& piece) {
    std::string text;
    for (std::size_t at = 0; at < piece.size();) {
      if (piece.compare(at, blank_mark.size(), blank_mark) == 0) {
        text += ' ';
        at += blank_mark.size();
      } else {
        text += piece[at++];
      }
    }
    return text;
  }

  std::string model_;
  sentencepiece::SentencePieceProcessor processor_;
  TokenizerIdentity identity_;
  bool adds_blank_ = false;
};

}  // namespace

std::unique_ptr<Tokenizer> make_sentencepiece_tokenizer(std::string model, std::string origin,
                                                        const std::string& name) {
  return std::make_unique<SentencePieceTokenizer>(std::move(model), std::move(origin), name);
}

}  // namespace ganymede::data
