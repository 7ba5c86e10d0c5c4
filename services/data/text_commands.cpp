#include <cerrno>
#include <charconv>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <system_error>

#include "common/base/error.h"
#include "services/data/commands.h"
#include "services/data/dataset.h"
#include "services/data/utf8.h"

namespace ganymede::data {

void encode_command(const std::string& dataset, const std::optional<std::string>& text) {
  auto tokenizer = Dataset(dataset).open_tokenizer();
  std::string input = text ? *text : std::string(std::istreambuf_iterator<char>(std::cin), {});
  if (tokenizer->needs_utf8() && !is_utf8(input))
    fail_usage("The text is not UTF-8, which the tokenizer of {} needs.", dataset);
  std::vector<std::uint32_t> ids;
  tokenizer->encode(input, ids);
  fmt::print("{}\n", fmt::join(ids, " "));
}

void decode_command(const std::string& dataset, std::istream& in) {
  auto tokenizer = Dataset(dataset).open_tokenizer();
  bool first = true;
  for (std::string word; in >> word;) {
    std::uint32_t id = 0;
    auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), id);
    if (error != std::errc() || end != word.data() + word.size()) fail_usage("\"{}\" is no token id.", word);
    std::string bytes = tokenizer->bytes_of(id, first);
    first = false;
    bool written = std::fwrite(bytes.data(), 1, bytes.size(), stdout) == bytes.size() && std::fflush(stdout) == 0;
    if (!written) throw std::system_error(errno, std::generic_category(), "stdout");
  }
}

}  // namespace ganymede::data
