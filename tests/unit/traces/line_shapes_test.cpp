// Lines whose shape is known are read without JSON: what comes of it is what JSON gives.

#include <gmock/gmock.h>

#include <array>
#include <string>
#include <vector>

#include "record.hpp"
#include "support/trace_generator.hpp"

namespace qualify::traces {
namespace {

constexpr std::size_t kPadding = 64;

/// Reads lines one after another, each also by a parser that has never seen another.
class Shapes : public ::testing::Test {
 protected:
  /// Whether the line is a record; it is the same record to both.
  bool agrees(const std::string& line) {
    const std::string padded = line + std::string(kPadding, '\0');
    const std::string_view text(padded.data(), line.size());
    Record record;
    const bool good = parser.parse(text, kPadding, record);
    RecordParser fresh(manifest, strings);
    Record expected;
    EXPECT_EQ(fresh.parse(text, kPadding, expected), good) << line;
    EXPECT_TRUE(!good || record == expected) << line;
    return good;
  }
  /// Whether a line like it was read before, as a reader of shapes alone sees it.
  static bool known(const std::string& learned, const std::string& line) {
    Manifest manifest;
    Strings strings;
    RecordParser parser(manifest, strings);
    Record record;
    for (const std::string& each : {learned, learned}) {
      const std::string padded = each + std::string(kPadding, '\0');
      EXPECT_TRUE(parser.parse({padded.data(), each.size()}, kPadding, record)) << each;
    }
    const std::size_t before = parser.lines_by_shape();
    EXPECT_EQ(before, 1U) << learned;
    const std::string padded = line + std::string(kPadding, '\0');
    (void)parser.parse({padded.data(), line.size()}, kPadding, record);
    return parser.lines_by_shape() > before;
  }
  Manifest manifest;
  Strings strings;
  RecordParser parser{manifest, strings};
};

const std::string kTensor =
    R"({"event":"tensor","iteration":1,"metadata":{"bytes":64,"group":"dp.0","group_seq":3,"kind":"collective","op":"all-reduce","role":"input"},"microbatch":0,"name":"layer.0","occurrence":0,"phase":"forward","rank":0,"schema_version":1,"sequence":1,"tensor":{"digest":"00112233445566778899aabbccddeeff","dtype":"bfloat16","mode":"device","multiset":"0123456789abcdef","shape":[4,8]}})";
const std::string kEvent =
    R"({"event":"event","fields":{"kind":"metric","value":1.5},"iteration":1,"microbatch":null,"name":"loss","occurrence":0,"phase":"train","rank":0,"schema_version":1,"sequence":1})";
const std::string kFork =
    R"({"iteration": 1, "kind": "collective", "name": "reduce.begin", "payload": {"group_seq": 1, "sha256": "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"}, "rank": 0, "schema_version": 1, "sequence": 4})";

std::string with(std::string line, const std::string& from, const std::string& to) {
  const std::size_t at = line.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? line : line.replace(at, from.size(), to);
}

TEST_F(Shapes, ValuesOfOtherLinesAreReadInTheirPlaces) {
  for (const auto& [line, from, to] : std::vector<std::array<std::string, 3>>{
           {kTensor, "\"iteration\":1", "\"iteration\":4711"},
           {kTensor, "\"sequence\":1", "\"sequence\":9223372036854775807"},
           {kTensor, "layer.0", "a.rather.longer.name.of.a.layer.17"},
           {kTensor, "forward", "backward"},
           {kTensor, "dp.0", "expert.parallel.3"},
           {kTensor, "00112233", "fFeEdDcC"},
           {kTensor, "0123456789abcdef", "ffffffffffffffff"},
           {kTensor, "[4,8]", "[4096,1,7]"},
           {kTensor, "[4,8]", "[]"},
           {kEvent, "1.5", "-2.5e-7"},
           {kEvent, "1.5", "0.1"},
           {kFork, "\"sequence\": 4", "\"sequence\": 123"},
           {kFork, "ccddeeff\"", "ccddee00\""}}) {
    EXPECT_TRUE(known(line, with(line, from, to))) << to;
    EXPECT_TRUE(agrees(line));
    EXPECT_TRUE(agrees(with(line, from, to))) << to;
  }
}

TEST_F(Shapes, WhatIsInDoubtIsReadAsJson) {
  struct Doubt {
    const std::string& line;
    const char* from;
    const char* to;
    bool good;
  };
  for (const Doubt& each : std::vector<Doubt>{
           // Other members, another order, other spaces.
           {kTensor, R"("iteration":1,)", R"( "iteration":1,)", true},
           {kTensor, R"("microbatch":0,)", "", true},
           {kTensor, R"("microbatch":0)", R"("microbatch":null)", true},
           {kTensor, R"("rank":0,"schema_version":1)", R"("schema_version":1,"rank":0)", true},
           {kTensor, R"("rank":0)", R"("rank":0,"rank":7)", true},
           {kTensor, R"("mode":"device")", R"("mode":"full")", true},
           // Texts that JSON has otherwise than they stand there.
           {kTensor, "layer.0", R"(layer.\u0030)", true},
           {kTensor, "layer.0", R"(layer\".0)", true},
           {kTensor, "layer.0", "l\xC3\xA4yer", true},
           {kTensor, "layer.0", "l\xC3yer", false},
           {kTensor, "layer.0", "l\x01yer", false},
           {kTensor, "dp.0", R"(dp\/0)", true},
           // Numbers that JSON does not have, or not in such a column.
           {kTensor, "\"iteration\":1", "\"iteration\":01", false},
           {kTensor, "\"iteration\":1", "\"iteration\":1x", false},
           {kTensor, "\"iteration\":1", "\"iteration\":", false},
           {kTensor, "\"iteration\":1", "\"iteration\":9223372036854775808", false},
           {kTensor, "\"microbatch\":0", "\"microbatch\":2147483648", false},
           {kTensor, "\"bytes\":64", "\"bytes\":-1", true},
           {kTensor, "\"bytes\":64", "\"bytes\":64.0", false},
           {kTensor, "[4,8]", "[4, 8]", true},
           {kTensor, "[4,8]", "[4,,8]", false},
           {kTensor, "[4,8]", "[4,8", false},
           {kTensor, "[4,8]", "[04,8]", false},
           {kTensor, "[4,8]", "[-4,8]", true},
           // Digests that are none, or of another length.
           {kTensor, "00112233", "0011223g", false},
           {kTensor, "0011223344556677", "", true},
           {kTensor, "0123456789abcdef", "0123456789abcde", false},
           {kEvent, "1.5", "15", true},
           {kEvent, "1.5", "1.", false},
           {kEvent, "1.5", "01.5", false},
           {kEvent, "1.5", "20.0009000000000000001", true},
           {kEvent, "1.5", "true", true},
           {kEvent, "1.5", R"("0x3fc00000")", true},
           {kEvent, "1.5", "1e999", false},
           // What begins like null and is not.
           {kTensor, "[4,8]", "nulx", false},
           {kEvent, "\"loss\"", "nulx", false},
           {kEvent, R"({"kind":"metric","value":1.5})", "nulx", false},
           // A name may say what kind of event it is.
           {kFork, "reduce.begin", "reduce.end", true},
           // Cut off, and more than a record.
           {kTensor, "}}", "}", false},
           {kTensor, "}}", "", false}}) {
    const std::string line = with(each.line, each.from, each.to);
    EXPECT_FALSE(known(each.line, line)) << each.to;
    EXPECT_TRUE(agrees(each.line));
    EXPECT_EQ(agrees(line), each.good) << line;
  }
}

TEST_F(Shapes, BitsAndWholeNumbersKeepTheirTypes) {
  const std::string bits = with(kEvent, "1.5", R"("0x3fc00000")");
  const std::string whole = with(kEvent, "1.5", "15");
  EXPECT_TRUE(known(bits, with(bits, "3fc00000", "7FC00001")));
  EXPECT_FALSE(known(bits, with(bits, "3fc00000", "3fc0000g")));
  EXPECT_FALSE(known(bits, with(bits, "3fc00000", "3ff8000000000000")));
  EXPECT_TRUE(known(whole, with(whole, "15", "18446744073709551")));
  for (const std::string& line :
       {bits, with(bits, "3fc00000", "7FC00001"), with(bits, "3fc00000", "3fc0000g"),
        with(bits, "3fc00000", "3ff8000000000000"), whole, with(whole, "15", "9999999999999999999"),
        with(whole, "15", "-15"), kEvent}) {
    EXPECT_TRUE(agrees(line)) << line;
  }
}

TEST_F(Shapes, MembersThatAreThereTwiceAreNoShape) {
  for (const auto& [line, from, to] : std::vector<std::array<std::string, 3>>{
           {kTensor, R"("rank":0)", R"("rank":1,"rank":null)"},
           {kTensor, R"("bytes":64)", R"("bytes":64,"bytes":null)"},
           {kTensor, R"("dtype")", R"("digest":"0000000000000000","dtype")"},
           {kEvent, R"("value":1.5)", R"("value":1.5,"value":true)"}}) {
    const std::string twice = with(line, from, to);
    EXPECT_TRUE(agrees(twice));
    EXPECT_TRUE(agrees(twice));
    EXPECT_TRUE(agrees(with(twice, "\"iteration\":1", "\"iteration\":2")));
  }
  EXPECT_EQ(parser.lines_by_shape(), 0U);
}

TEST_F(Shapes, ARecordOfSeveralValuesIsReadAsJson) {
  const std::string several = with(kEvent, "\"value\":1.5", "\"value\":1.5,\"tokens\":7");
  EXPECT_TRUE(agrees(several));
  EXPECT_TRUE(agrees(several));
  EXPECT_EQ(parser.lines_by_shape(), 0U);
}

TEST_F(Shapes, LinesOfATraceAreReadByTheirShape) {
  test::TraceShape shape;
  std::size_t lines = 0;
  test::generate_trace(shape, {}, [&](std::int64_t rank, const Event& event, const Strings& from) {
    if (rank != 3) return;
    std::string line;
    test::append_json_line(rank, event, from, line);
    if (line.ends_with('\n')) line.pop_back();
    EXPECT_TRUE(agrees(line));
    ++lines;
  });
  EXPECT_GT(parser.lines_by_shape(), lines * 3 / 4);
}

TEST_F(Shapes, LookingEndsWhereEveryLineIsAnother) {
  for (int i = 0; i < 1500; ++i) {
    const std::string other =
        with(kEvent, "\"kind\"", "\"member" + std::to_string(i) + "\":null,\"kind\"");
    EXPECT_TRUE(agrees(other));
  }
  EXPECT_TRUE(agrees(kEvent));
  EXPECT_TRUE(agrees(kEvent));
  EXPECT_EQ(parser.lines_by_shape(), 0U);
}

}  // namespace
}  // namespace qualify::traces
