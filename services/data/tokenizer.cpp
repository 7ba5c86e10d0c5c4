#include "services/data/tokenizer.h"

#include "common/base/error.h"
#include "common/os/files.h"

namespace ganymede::data {
namespace {

class BytesTokenizer final : public Tokenizer {
 public:
  BytesTokenizer() { identity_.end_of_document = 0; }
  const TokenizerIdentity& identity() const override { return identity_; }
  void encode(std::string_view text, std::vector<std::uint32_t>& ids) const override {
    ids.reserve(ids.size() + text.size());
    for (char c : text) ids.push_back(static_cast<unsigned char>(c));
  }
  std::string bytes_of(std::uint32_t id, bool) const override {
    if (id > 255) fail_usage("Token {} is not in the vocabulary of 256 bytes.", id);
    return id == 0 ? std::string() : std::string(1, static_cast<char>(id));
  }
  bool needs_utf8() const override { return false; }
  const std::string& model() const override { return model_; }

 private:
  TokenizerIdentity identity_;
  std::string model_;
};

}  // namespace

std::unique_ptr<Tokenizer> make_bytes_tokenizer() { return std::make_unique<BytesTokenizer>(); }

std::string read_tokenizer_model(const std::string& file) {
  try {
    return os::read_file(file);
  } catch (const Error&) {
    fail_usage("Tokenizer \"{}\" is neither \"bytes\" nor \"train:VOCABULARY\" nor a file that can be read.", file);
  }
}

std::string decode(const Tokenizer& tokenizer, const std::vector<std::uint32_t>& ids) {
  std::string text;
  bool first = true;
  for (std::uint32_t id : ids) {
    text += tokenizer.bytes_of(id, first);
    first = false;
  }
  return text;
}

}  // namespace ganymede::data
