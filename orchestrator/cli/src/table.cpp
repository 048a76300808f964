#include "table.hpp"

#include <algorithm>

namespace qualify::cli {

namespace {

/// Columns that UTF-8 text takes, counting each code point as one.
std::size_t columns(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
  }));
}

/// Breaks at spaces; a word longer than the room stays whole, since paths must stay copyable.
std::vector<std::string> wrapped(const std::string& text, std::size_t room) {
  std::vector<std::string> lines;
  std::string line;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = text.find(' ', at);
    if (end == std::string::npos) end = text.size();
    const std::string word = text.substr(at, end - at);
    at = end + 1;
    if (!line.empty() && columns(line) + 1 + columns(word) > room) {
      lines.push_back(std::move(line));
      line.clear();
    }
    if (!line.empty()) line += ' ';
    line += word;
  }
  if (!line.empty() || lines.empty()) lines.push_back(std::move(line));
  return lines;
}

}  // namespace

void print_wrapped(std::ostream& out, const std::string& text, int indent, int width) {
  const auto room = static_cast<std::size_t>(std::max(width - indent, 20));
  bool first = true;
  for (const std::string& line : wrapped(printable(text), room)) {
    if (!first) out << std::string(static_cast<std::size_t>(indent), ' ');
    out << line << '\n';
    first = false;
  }
}

void Table::print(std::ostream& out, int width) const {
  std::vector<std::size_t> widths(rows_.front().size(), 0);
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], columns(printable(row[i])));
    }
  }
  std::size_t before_last = 0;
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) before_last += widths[i] + 2;
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t i = 0; i + 1 < row.size(); ++i) {
      const std::string cell = printable(row[i]);
      line += cell + std::string(widths[i] - columns(cell) + 2, ' ');
    }
    out << line;
    print_wrapped(out, row.back(), static_cast<int>(before_last), width);
  }
}

}  // namespace qualify::cli
