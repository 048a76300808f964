#include "tree.hpp"

#include <sstream>

#include "table.hpp"

namespace qualify::cli {

namespace {

constexpr int kIndent = 3;

/// `first` stands before the branch's first line, `rest` before its others and all below it.
void print_branch(std::ostream& out, const Branch& branch, const std::string& first,
                  const std::string& rest, int width) {
  std::ostringstream text;
  print_wrapped(text, branch.text, 0, width - static_cast<int>(first.size()) - kIndent);
  std::istringstream lines(text.str());
  // A line that goes on stays left of what is below, and under the line that leads there.
  const std::string on = rest + (branch.below.empty() ? "" : "|  ");
  bool begun = false;
  for (std::string line; std::getline(lines, line); begun = true) {
    out << (begun ? on : first) << (begun && branch.below.empty() ? "  " : "") << line << '\n';
  }
  for (std::size_t i = 0; i < branch.below.size(); ++i) {
    const bool last = i + 1 == branch.below.size();
    print_branch(out, branch.below[i], rest + (last ? "`- " : "|- "),
                 rest + (last ? std::string(kIndent, ' ') : "|  "), width);
  }
}

}  // namespace

void print_tree(std::ostream& out, const Branch& root, int width) {
  print_branch(out, root, "", "", width);
}

}  // namespace qualify::cli
