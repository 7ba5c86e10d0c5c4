#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "services/data/pack.h"

/// The commands of ganymede-data that work on datasets. Results go to stdout; faults are thrown as Error.
namespace ganymede::data {

/// Packs and prints a summary for a person, or one JSON object.
void pack_command(const PackOptions& options, bool json);

/// The same for a run configuration. A dataset that is there already and is what the configuration asks for is left as
/// it is; one that is not is refused.
void pack_configured(const std::string& config_file, bool json);

/// Throws Error when the dataset that a recipe with these settings ("key=value") names is there and cannot be used, or
/// is not what the recipe asks for. One that is not there is packed on first use. Else prints one line on stdout that
/// says which of these it is.
void check_command(const std::string& recipe, const std::vector<std::string>& settings);

struct InspectOptions {
  std::string dataset;
  std::optional<std::uint64_t> row;  // show this row's text instead of the overview
  bool json = false;
  bool verify = false;  // read everything and compare the hashes first
};
void inspect_command(const InspectOptions& options);

/// Prints the ids of `text` (of what stdin holds, if there is none), separated by blanks.
void encode_command(const std::string& dataset, const std::optional<std::string>& text);

struct DecodeOptions {
  std::uint64_t dim = 0;
  bool terminal = false;
  bool line = false;  // a text that does not end in a line end gets one
};
/// Reads ids from `in`, separated by blanks or lines, and writes the bytes of each as it comes, flushing every time.
/// `terminal`: that is where they go; then the first `dim` tokens are framed by its codes for dim letters, and nothing
/// of the text can steer it (terminal_text.h). Else they are the bytes of the text. Throws Error for what is no token;
/// the text so far gets its line end then, so that the error begins a line.
void decode_command(const std::string& dataset, std::istream& in, const DecodeOptions& options);

/// Prints rows as JSON, one a line: {"row", "tokens", "targets", "documents", "loss_tokens"}.
struct RowsOptions {
  std::string dataset;
  std::string split = "validation";  // or "train"
  std::uint64_t first = 0, count = 1;
};
void rows_command(const RowsOptions& options);

}  // namespace ganymede::data
