#include "tree.hpp"

#include <gmock/gmock.h>

#include <sstream>

namespace qualify::cli {
namespace {

std::string printed(const Branch& root, int width = 80) {
  std::ostringstream out;
  print_tree(out, root, width);
  return out.str();
}

TEST(Tree, LeadsFromEveryLineToWhatIsBelowIt) {
  Branch root{"a"};
  root.add("b").add("c");
  root.add("d").add("e");
  EXPECT_EQ(printed(root), "a\n|- b\n|  `- c\n`- d\n   `- e\n");
}

TEST(Tree, WrapsTextWithinTheWidthAndKeepsTheLinesThatPass) {
  Branch root{"root"};
  root.add("one two three four five six seven").add("below it");
  root.add("last one two three four five six");
  std::istringstream lines(printed(root, 28));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 28U) << line;
  EXPECT_EQ(printed(root, 28),
            "root\n"
            "|- one two three four\n"
            "|  |  five six seven\n"
            "|  `- below it\n"
            "`- last one two three\n"
            "     four five six\n");
}

TEST(Tree, ShowsNoControlCharactersOfOthers) {
  Branch root{"a"};
  root.add("red \x1b[31m name");
  EXPECT_EQ(printed(root).find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace qualify::cli
