#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "qualify/base/text.hpp"

namespace qualify::cli {

/// Rows of text in aligned columns. The last column is wrapped at `width`, so that a table stays
/// readable on 80 columns. Control characters are shown as '?': names come from outside.
class Table {
 public:
  explicit Table(std::vector<std::string> header) : rows_{std::move(header)} {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  [[nodiscard]] bool empty() const { return rows_.size() == 1; }
  void print(std::ostream& out, int width) const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

/// Prints a paragraph wrapped at `width`; lines after the first are indented by `indent`.
void print_wrapped(std::ostream& out, const std::string& text, int indent, int width);

}  // namespace qualify::cli
