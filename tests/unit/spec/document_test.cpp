#include "qualify/spec/document.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace qualify::spec {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string refusal(const std::string& text) {
  const auto parsed = parse_yaml(text, "a.yaml");
  return parsed ? "accepted" : parsed.error().describe();
}

TEST(Yaml, ValuesKnowWhereTheyStand) {
  const Node root = parse_yaml("a: 1\nb:\n  - x\n  - 'y'\n", "a.yaml").value();
  ASSERT_EQ(root.kind, Node::Kind::mapping);
  const Node* list = root.find("b");
  ASSERT_NE(list, nullptr);
  ASSERT_EQ(list->items.size(), 2U);
  EXPECT_EQ(list->items[1].mark.line, 4);
  EXPECT_EQ(list->items[1].mark.column, 5);
  EXPECT_TRUE(list->items[1].quoted);
  EXPECT_EQ(root.find("a")->key_mark.line, 1);
}

TEST(Yaml, RefusesWhatCanHideAMistake) {
  EXPECT_THAT(refusal("a: 1\na: 2\n"), HasSubstr("a.yaml:2:1: duplicate key 'a'"));
  EXPECT_THAT(refusal("a: &x 1\nb: *x\n"), HasSubstr("a.yaml:1:4: anchors are not accepted"));
  EXPECT_THAT(refusal("a: !!binary aGk=\n"), HasSubstr("tags are not accepted"));
  EXPECT_THAT(refusal("a: 1\n---\nb: 2\n"), HasSubstr("more than one YAML document"));
  EXPECT_THAT(refusal("? [a, b]\n: 1\n"), HasSubstr("a key must be plain text"));
  EXPECT_THAT(refusal(""), HasSubstr("the file is empty"));
  EXPECT_THAT(refusal(std::string("a: \0", 4)), HasSubstr("NUL"));
  EXPECT_THAT(refusal("a: [1, 2\n"), HasSubstr("not valid YAML"));
  EXPECT_THAT(refusal(std::string(100, '[') + std::string(100, ']')), HasSubstr("nested deeper"));
}

TEST(Fields, ReadsEachType) {
  const Node root = parse_yaml(
                        "name: x\ncount: 3\nflag: true\nlimit: 5m\nkind: two\nwords: [a, b]\n"
                        "numbers: [1, -2]\nenv: {A: '1', B: two}\n",
                        "a.yaml")
                        .value();
  Faults faults("a.yaml");
  Fields fields(root, "the file", faults);
  EXPECT_EQ(fields.required_text("name"), "x");
  EXPECT_EQ(fields.integer("count", 0, 1, 10), 3);
  EXPECT_TRUE(fields.boolean("flag", false));
  EXPECT_EQ(fields.duration("limit", {}), std::chrono::minutes(5));
  EXPECT_EQ(fields.choice("kind", {"one", "two"}, {}), 1U);
  EXPECT_THAT(fields.texts("words"), ElementsAre("a", "b"));
  EXPECT_THAT(fields.integers("numbers"), ElementsAre(1, -2));
  EXPECT_EQ(fields.text_map("env").at("B"), "two");
  fields.finish();
  EXPECT_TRUE(faults.empty());
}

TEST(Fields, EveryFaultIsReportedInFileOrder) {
  const Node root =
      parse_yaml("nmae: x\ncount: many\nflag: 'true'\nkind: tow\nenv: {A: [1]}\n", "a.yaml")
          .value();
  Faults faults("a.yaml");
  Fields fields(root, "the file", faults);
  fields.choice("kind", {"one", "two"}, {});
  fields.required_text("name");
  fields.integer("count", 0, 1, 10);
  fields.boolean("flag", false);
  fields.text_map("env");
  fields.finish();
  ASSERT_FALSE(faults.empty());
  const Error error = faults.fail().value();
  EXPECT_EQ(error.code, Errc::invalid_input);
  EXPECT_EQ(error.others.size(), 5U);
  const std::string text = error.describe();
  EXPECT_THAT(text,
              HasSubstr("a.yaml:1:1: unknown key 'nmae' in the file\n  did you mean 'name'?"));
  EXPECT_THAT(text, HasSubstr("a.yaml:1:1: the file needs 'name'"));
  EXPECT_THAT(text, HasSubstr("a.yaml:2:8: 'count' must be a whole number, found 'many'"));
  EXPECT_THAT(text, HasSubstr("a.yaml:3:7: 'flag' must be true or false"));
  EXPECT_THAT(text, HasSubstr("did you mean 'two'?"));
  EXPECT_THAT(text, HasSubstr("'A' must be text, found a list"));
}

TEST(Fields, SchemaVersionMustBeKnown) {
  for (const char* text : {"a: 1\n", "schema_version: 2\na: 1\n"}) {
    const Node root = parse_yaml(text, "a.yaml").value();
    Faults faults("a.yaml");
    Fields fields(root, "the file", faults);
    fields.schema_version(1);
    EXPECT_FALSE(faults.empty()) << text;
  }
}

TEST(Nearest, FarIsNone) {
  EXPECT_EQ(nearest("argz", {"args", "environment"}), "args");
  EXPECT_EQ(nearest("zzzzzz", {"args", "environment"}), "");
}

}  // namespace
}  // namespace qualify::spec
