#include <cerrno>
#include <charconv>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <system_error>

#include "common/base/error.h"
#include "services/data/commands.h"
#include "services/data/dataset.h"
#include "services/data/terminal_text.h"
#include "services/data/utf8.h"

namespace ganymede::data {
namespace {

constexpr const char* dim_letters = "\x1b[2m";
constexpr const char* plain_letters = "\x1b[0m";

/// Text on its way to stdout, with its first tokens dim.
class DecodedText {
 public:
  explicit DecodedText(const DecodeOptions& options)
      : dim_(options.terminal ? options.dim : 0), terminal_(options.terminal) {}

  std::uint64_t tokens() const { return tokens_; }

  void add(const std::string& bytes) {
    if (tokens_ == 0 && dim_ > 0) write(dim_letters);
    show(terminal_ ? safe_.take(bytes) : bytes);
    if (++tokens_ == dim_) write(plain_letters);
  }

  /// `line`: what comes next begins a line.
  void end(bool line) {
    show(safe_.end());
    if (tokens_ > 0 && tokens_ < dim_) write(plain_letters);
    if (line && last_ != '\n') write("\n");
  }

 private:
  void show(const std::string& text) {
    if (!text.empty()) last_ = text.back();
    write(text);
  }

  static void write(const std::string& bytes) {
    bool written = std::fwrite(bytes.data(), 1, bytes.size(), stdout) == bytes.size() && std::fflush(stdout) == 0;
    if (!written) throw std::system_error(errno, std::generic_category(), "stdout");
  }

  std::uint64_t dim_, tokens_ = 0;
  bool terminal_;
  char last_ = '\n';  // of the text
  TerminalText safe_;
};

std::uint32_t token_id(const std::string& word) {
  std::uint32_t id = 0;
  auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), id);
  if (error != std::errc() || end != word.data() + word.size()) fail_usage("\"{}\" is no token id.", word);
  return id;
}

}  // namespace

void encode_command(const std::string& dataset, const std::optional<std::string>& text) {
  auto tokenizer = Dataset(dataset).open_tokenizer();
  std::string input = text ? *text : std::string(std::istreambuf_iterator<char>(std::cin), {});
  if (tokenizer->needs_utf8() && !is_utf8(input))
    fail_usage("The text is not UTF-8, which the tokenizer of {} needs.", dataset);
  std::vector<std::uint32_t> ids;
  tokenizer->encode(input, ids);
  fmt::print("{}\n", fmt::join(ids, " "));
}

void decode_command(const std::string& dataset, std::istream& in, const DecodeOptions& options) {
  auto tokenizer = Dataset(dataset).open_tokenizer();
  DecodedText text(options);
  try {
    for (std::string word; in >> word;) text.add(tokenizer->bytes_of(token_id(word), text.tokens() == 0));
  } catch (const Error&) {
    text.end(true);
    throw;
  }
  text.end(options.line);
}

}  // namespace ganymede::data
