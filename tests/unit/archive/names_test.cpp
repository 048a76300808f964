#include "qualify/archive/names.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace qualify::archive {
namespace {

using ::testing::HasSubstr;

std::string refusal(std::string_view path) {
  const auto good = check_member_name(path);
  return good ? "accepted" : good.error().describe();
}

TEST(MemberName, RefusesWhatCannotBeLaidOut) {
  EXPECT_EQ(refusal("a/b-c.d/é"), "accepted");
  EXPECT_THAT(refusal(""), HasSubstr("is empty"));
  EXPECT_THAT(refusal("/etc/passwd"), HasSubstr("is absolute"));
  EXPECT_THAT(refusal("a/../b"), HasSubstr("'..'"));
  EXPECT_THAT(refusal("a//b"), HasSubstr("empty part"));
  EXPECT_THAT(refusal("a/"), HasSubstr("empty part"));
  EXPECT_THAT(refusal("a\nb"), HasSubstr("a\\x0ab"));
  EXPECT_THAT(refusal("caf\xe9"), HasSubstr("is not UTF-8"));
  EXPECT_THAT(refusal(std::string(256, 'x')), HasSubstr("255 bytes"));
  std::string longest;
  while (longest.size() < 4096) longest += "0123456789/";
  EXPECT_THAT(refusal(longest + "x"), HasSubstr("longer than 3840 bytes"));
}

TEST(TreeCheck, FindsNamesThatClashByCaseOrUnicodeForm) {
  TreeCheck check;
  check.add_file("docs/README");
  check.add_file("docs/Readme");
  check.add_file("e\xcc\x81.txt");  // e + combining acute
  check.add_file("\xc3\xa9.txt");   // é
  check.add_file("src/a.c");
  check.add_file("Src/b.c");
  const auto faults = check.faults();
  ASSERT_EQ(faults.size(), 3U);
  EXPECT_THAT(faults[0].describe(), HasSubstr("'docs/README' and 'docs/Readme'"));
  EXPECT_THAT(faults[2].describe(), HasSubstr("'src' and 'Src'"));
}

TEST(TreeCheck, AFileAndAFolderOrTwoFilesOfOneNameAreFaults) {
  const auto faults_of = [](const std::vector<std::string>& paths) {
    TreeCheck check;
    for (const std::string& path : paths) check.add_file(path);
    std::string text;
    for (const Error& fault : check.faults()) text += fault.describe() + "\n";
    return text;
  };
  EXPECT_THAT(faults_of({"a", "a/b"}), HasSubstr("a file and a folder share a name"));
  EXPECT_THAT(faults_of({"a/b", "a"}), HasSubstr("a file and a folder share a name"));
  EXPECT_THAT(faults_of({"a/b", "a/b"}), HasSubstr("a/b: the name stands there twice"));
  EXPECT_EQ(faults_of({"a/b/c", "a/b/d", "a/e"}), "");
}

TEST(Printable, IsCutBetweenCharacters) {
  for (std::size_t shift = 0; shift < 4; ++shift) {
    std::string path(shift, 'x');
    for (int i = 0; i < 200; ++i) path += "\xe2\x82\xac";
    const std::string shown = printable(path);
    EXPECT_LT(shown.size(), 220U);
    EXPECT_TRUE(check_member_name(shown)) << shown;
  }
}

TEST(TreeCheck, TheSameNameInTwoFoldersIsNoClash) {
  TreeCheck check;
  check.add_file("a/x");
  check.add_file("b/x");
  check.add_file("b/y");
  EXPECT_TRUE(check.faults().empty());
}

std::size_t link_faults(const std::vector<std::pair<std::string, std::string>>& links) {
  TreeCheck check;
  for (const auto& [path, target] : links) check.add_symlink(path, target);
  return check.faults().size();
}

TEST(TreeCheck, FollowsLinksAsTheKernelDoes) {
  EXPECT_EQ(link_faults({{"a/l", "../b"}}), 0U);
  EXPECT_EQ(link_faults({{"a/l", "../../b"}}), 1U);
  EXPECT_EQ(link_faults({{"l", "/etc/passwd"}}), 1U);
  EXPECT_EQ(link_faults({{"l", "missing"}}), 0U);
  EXPECT_EQ(link_faults({{"a", "b"}, {"b", "a"}}), 0U);  // a loop leads nowhere
  // In words m stays in "deep"; through k it leaves.
  EXPECT_EQ(link_faults({{"deep/er/k", "../.."}, {"m", "deep/er/k/../x"}}), 1U);
  EXPECT_EQ(link_faults({{"deep/er/k", ".//./..//"}, {"m", "deep/er/k/../x"}}), 0U);
  EXPECT_EQ(link_faults({{"deep/er/k", ".//./..//"}, {"m", "deep/er/k/../../x"}}), 1U);
  // The first hop is inside, the last is not.
  EXPECT_EQ(link_faults({{"a/p", "../q"}, {"q", "b/r"}, {"b/r", "../a/../../x"}}), 3U);
}

TEST(LinkTarget, IsWhatTheKernelTakes) {
  EXPECT_TRUE(check_link_target("l", "../x"));
  EXPECT_TRUE(check_link_target("l", std::string(4095, 'x')));
  EXPECT_FALSE(check_link_target("l", std::string(4096, 'x')));
  EXPECT_FALSE(check_link_target("l", ""));
  EXPECT_FALSE(check_link_target("l", std::string_view("..\0x", 4)));
}

}  // namespace
}  // namespace qualify::archive
