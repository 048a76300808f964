#include "qualify/base/text.hpp"

#include <gtest/gtest.h>

namespace qualify {
namespace {

TEST(Text, NothingInANameBecomesMarkup) {
  EXPECT_EQ(escape_xml("a<b> & \"c\""), "a&lt;b&gt; &amp; &quot;c&quot;");
}

TEST(Text, ControlCharactersAreNotXml) {
  EXPECT_EQ(escape_xml(std::string_view("a\x1b[31m\n\x7f\0", 9)), "a?[31m???");
}

TEST(Text, WhatIsNotUtf8IsReplacedByteByByteAndNothingElse) {
  for (const std::string_view good : {"", "plain", "Zürich", "東京", "\U0001F600"}) {
    EXPECT_TRUE(is_utf8(good)) << good;
    EXPECT_EQ(to_utf8(good), good);
  }
  const std::string bad = "\xEF\xBF\xBD";
  EXPECT_EQ(to_utf8("caf\xe9"), "caf" + bad);
  EXPECT_EQ(to_utf8("\xe9t\xe9"), bad + "t" + bad);
  EXPECT_EQ(to_utf8("\xc0\xaf"), bad + bad);            // overlong
  EXPECT_EQ(to_utf8("\xed\xa0\x80"), bad + bad + bad);  // a surrogate
  EXPECT_EQ(to_utf8("\xf4\x90\x80\x80").size(), 12U);   // beyond U+10FFFF
  EXPECT_FALSE(is_utf8("\xe6\x9d"));                    // cut off
}

}  // namespace
}  // namespace qualify
