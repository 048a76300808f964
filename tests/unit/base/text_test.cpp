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

}  // namespace
}  // namespace qualify
