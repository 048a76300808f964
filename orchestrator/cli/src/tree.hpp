#pragma once

#include <ostream>
#include <string>
#include <utility>
#include <vector>

namespace qualify::cli {

/// Lines below each other, as a tree on a terminal.
struct Branch {
  std::string text;
  std::vector<Branch> below = {};

  /// Adds one branch below and returns it; valid until the next is added.
  Branch& add(std::string line) { return below.emplace_back(Branch{std::move(line)}); }
};

/// The root's text, then what is below it, with lines in ASCII to its left. Text is wrapped at
/// `width`; control characters in it are shown as '?'.
void print_tree(std::ostream& out, const Branch& root, int width);

}  // namespace qualify::cli
