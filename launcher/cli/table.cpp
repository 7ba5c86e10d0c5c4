#include "launcher/cli/table.h"

#include <algorithm>

#include "common/base/error.h"

namespace ganymede::cli {
namespace {

constexpr const char* gap = "  ";

/// Characters of UTF-8 text.
std::size_t length(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

}  // namespace

void Table::add(std::vector<std::string> cells) {
  GANYMEDE_CHECK(cells.size() <= columns_.size(), "{} cells for {} columns", cells.size(), columns_.size());
  cells.resize(columns_.size());
  rows_.push_back(std::move(cells));
}

std::string Table::text(bool skip_empty) const {
  std::vector<std::size_t> widths(columns_.size());
  std::vector<bool> shown(columns_.size(), !skip_empty);
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      widths[i] = std::max(widths[i], length(rows_[row][i]));
      if (row > 0 && !rows_[row][i].empty()) shown[i] = true;
    }
  }
  std::string text;
  for (const auto& row : rows_) {
    std::string line = indent_;
    const char* before = "";
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (!shown[i]) continue;
      std::string blanks(widths[i] - length(row[i]), ' ');
      line += before + (columns_[i] == 'r' ? blanks + row[i] : row[i] + blanks);
      before = gap;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace ganymede::cli
