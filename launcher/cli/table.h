#pragma once

#include <string>
#include <vector>

namespace ganymede::cli {

/// Rows of cells as columns, each as wide as its widest cell.
class Table {
 public:
  /// A letter a column: 'l' for text, 'r' for numbers.
  explicit Table(std::string columns, std::string indent = "") : columns_(std::move(columns)), indent_(indent) {}
  /// Cells that are missing at the end are empty.
  void add(std::vector<std::string> cells);
  /// A line a row, each with its newline and without blanks before it. Columns that are empty in all rows but the
  /// first, the header, are left out when `skip_empty`.
  std::string text(bool skip_empty = false) const;

 private:
  std::string columns_, indent_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace ganymede::cli
