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

void write(const std::string& bytes) {
  bool written = std::fwrite(bytes.data(), 1, bytes.size(), stdout) == bytes.size() && std::fflush(stdout) == 0;
  if (!written) throw std::system_error(errno, std::generic_category(), "stdout");
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

void decode_command(const std::string& dataset, std::istream& in, std::uint64_t dim, bool terminal) {
  auto tokenizer = Dataset(dataset).open_tokenizer();
  if (!terminal) dim = 0;
  TerminalText safe;
  std::uint64_t count = 0;
  for (std::string word; in >> word; ++count) {
    std::uint32_t id = 0;
    auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), id);
    if (error != std::errc() || end != word.data() + word.size()) fail_usage("\"{}\" is no token id.", word);
    std::string bytes = tokenizer->bytes_of(id, count == 0);
    if (terminal) bytes = safe.take(bytes);
    if (count == 0 && dim > 0) bytes = dim_letters + bytes;
    if (count + 1 == dim) bytes += plain_letters;
    write(bytes);
  }
  write(safe.end());
  if (count > 0 && count < dim) write(plain_letters);
}

}  // namespace ganymede::data
