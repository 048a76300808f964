#include "qualify/base/json.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <limits>
#include <nlohmann/json.hpp>

namespace qualify {
namespace {

std::string canonical(std::string_view text) {
  return canonical_json(parse_json(text, "test").value()).value();
}

// RFC 8785 section 3.2.2 and 3.2.3.
TEST(CanonicalJson, TheExamplesOfTheRfc) {
  EXPECT_EQ(canonical(R"({
    "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
    "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
    "literals": [null, true, false]})"),
            "{\"literals\":[null,true,false],\"numbers\":[333333333.3333333,1e+30,4.5,0.002,1e-27],"
            "\"string\":\"\xE2\x82\xAC$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\"}");
  EXPECT_EQ(
      canonical(R"({"\u20ac":1,"\r":2,"\ufb33":3,"1":4,"\ud83d\ude00":5,"\u0080":6,"\u00f6":7})"),
      "{\"\\r\":2,\"1\":4,\"\xC2\x80\":6,\"\xC3\xB6\":7,\"\xE2\x82\xAC\":1,"
      "\"\xF0\x9F\x98\x80\":5,\"\xEF\xAC\xB3\":3}");
}

// RFC 8785 appendix B: IEEE 754 bits against the text.
TEST(CanonicalJson, NumbersOfAppendixB) {
  const std::pair<std::uint64_t, const char*> cases[] = {
      {0x0000000000000000, "0"},
      {0x8000000000000000, "0"},
      {0x0000000000000001, "5e-324"},
      {0x8000000000000001, "-5e-324"},
      {0x7fefffffffffffff, "1.7976931348623157e+308"},
      {0x4340000000000000, "9007199254740992"},
      {0x4430000000000000, "295147905179352830000"},
      {0x44b52d02c7e14af5, "9.999999999999997e+22"},
      {0x44b52d02c7e14af6, "1e+23"},
      {0x444b1ae4d6e2ef4e, "999999999999999700000"},
      {0x444b1ae4d6e2ef50, "1e+21"},
      {0x3eb0c6f7a0b5ed8c, "9.999999999999997e-7"},
      {0x3eb0c6f7a0b5ed8d, "0.000001"},
      {0x41b3de4355555553, "333333333.3333332"},
      {0xbecbf647612f3696, "-0.0000033333333333333333"},
  };
  for (const auto& [bits, text] : cases) {
    EXPECT_EQ(canonical_bytes(Json(std::bit_cast<double>(bits))), text);
  }
}

TEST(CanonicalJson, FieldOrderDoesNotChangeTheDigest) {
  EXPECT_EQ(digest_of(parse_json(R"({"a":1,"b":[2]})", "").value()),
            digest_of(parse_json(R"({ "b" : [2], "a" : 1 })", "").value()));
}

TEST(CanonicalJson, RefusesWhatHasNoExactForm) {
  EXPECT_FALSE(canonical_json(Json(std::numeric_limits<double>::quiet_NaN())));
  EXPECT_FALSE(canonical_json(Json((1ULL << 53U) + 1)));
  EXPECT_FALSE(canonical_json(Json("\xFF")));
  EXPECT_FALSE(canonical_json(Json("\xED\xA0\x80")));  // a surrogate in UTF-8
}

TEST(ParseJson, RefusesDuplicateKeysSurrogatesTrailersAndDepth) {
  for (const std::string& text :
       {std::string(R"({"a":1,"a":2})"), std::string(R"(["\ud800"])"), std::string("{} {}"),
        std::string("[1,]"), std::string(), std::string("\"\xFF\""), std::string("NaN"),
        std::string(300, '[') + std::string(300, ']')}) {
    const auto parsed = parse_json(text, "file.json");
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, Errc::invalid_input);
    EXPECT_EQ(parsed.error().context, "file.json");
  }
}

TEST(ParseJson, NamesTheKeyThatIsThereTwice) {
  for (const char* text : {R"({"a":1,"twice":1,"twice":1})", R"([{"b":{"twice":{},"twice":[]}}])",
                           R"({"twice":{"a":1,"b":2},"c":3,"twice":{"a":1,"b":2,"d":4}})",
                           R"({"twice":1,"tw\u0069ce":2})"}) {
    const auto parsed = parse_json(text, "");
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().message, "not valid JSON: duplicate key \"twice\"") << text;
  }
  EXPECT_TRUE(parse_json(R"([{"once":{"once":1}},{"once":2}])", ""));
}

TEST(CanonicalJson, WritesPlainAndEscapedTextAlike) {
  EXPECT_EQ(canonical_json(Json("\"\\/\b\f\n\r\t\x01 plain \x1f\x7f\u00e9")).value(),
            R"("\"\\/\b\f\n\r\t\u0001 plain \u001f)"
            "\x7f\u00e9\"");
  EXPECT_EQ(canonical_json(Json{{"b\n", 1}, {"a\"", 2}, {"", 3}}).value(),
            R"({"":3,"a\"":2,"b\n":1})");
}

}  // namespace
}  // namespace qualify
