#include "qualify/policy/people.hpp"

#include <gmock/gmock.h>

#include <fstream>

#include "qualify/policy/gate.hpp"
#include "support/temp_folder.hpp"

namespace qualify::policy {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kGates =
    "schema_version: 1\n"
    "gates:\n"
    "  scale-48: {kind: repeatability, arm: det, metrics: [loss]}\n"
    "  cost: {kind: repeatability, arm: det, metrics: [loss]}\n";

Result<Qualification> read(const std::string& rest) {
  return parse_qualification(kGates + rest, "q.yaml");
}
std::string faults(const std::string& rest) {
  const auto qualification = read(rest);
  return qualification ? "" : qualification.error().describe();
}

TEST(People, RolesAndReleasesAreReadAsTheyAreDeclared) {
  const auto read_back = read(
      "people:\n"
      "  ana: {keys: [{file: keys/ana.pub, until: 2026-12-01T00:00:00Z}, {file: keys/ana-2.pub}]}\n"
      "  ben: {keys: [{file: keys/ben.pub, from: 2026-01-01T00:00:00Z}]}\n"
      "roles:\n"
      "  decide: {people: [ana, ben]}\n"
      "  sign: {people: [ana, ben], needed: 2}\n"
      "releases:\n"
      "  determinism-2026.12: {description: All of it, gates: [scale-48, cost]}\n");
  ASSERT_TRUE(read_back) << read_back.error().describe();
  ASSERT_EQ(read_back->people.size(), 2U);
  EXPECT_EQ(read_back->people[0].keys[0].file, "keys/ana.pub");
  EXPECT_EQ(read_back->people[0].keys[0].until, parse_time("2026-12-01T00:00:00Z").value());
  EXPECT_EQ(read_back->people[0].keys[0].where, "q.yaml:6:23");
  EXPECT_FALSE(read_back->people[0].keys[1].until);
  ASSERT_NE(read_back->role(role::kSign), nullptr);
  EXPECT_EQ(read_back->role(role::kSign)->needed, 2U);
  EXPECT_EQ(read_back->role(role::kDecide)->needed, 1U);
  EXPECT_EQ(read_back->role(role::kWaive), nullptr);
  ASSERT_NE(read_back->release("determinism-2026.12"), nullptr);
  EXPECT_THAT(read_back->releases[0].gates, ElementsAre("scale-48", "cost"));
}

TEST(People, AllFaultsAreNamedWithTheirPlace) {
  const std::string all = faults(
      "people:\n"
      "  ana: {keys: [{file: ../ana.pub}, {file: /etc/ana.pub}]}\n"
      "  \"e\\x1b[31mve\": {keys: [{file: keys/eve.pub, from: yesterday}]}\n"
      "  ben: {}\n"
      "roles:\n"
      "  decide: {people: [ana, bem], needed: 3}\n"
      "  sing: {people: [ana]}\n"
      "  waive: {people: [ana, ana]}\n"
      "releases:\n"
      "  one: {gates: [scale-84]}\n"
      "  two: {}\n");
  EXPECT_THAT(all, HasSubstr("q.yaml:6:23: a key must lie beside this file or below it"));
  EXPECT_THAT(all, HasSubstr("q.yaml:6:43"));
  EXPECT_THAT(all, HasSubstr("person name"));
  EXPECT_THAT(all, HasSubstr("not a time: 'yesterday'"));
  EXPECT_THAT(all, HasSubstr("person 'ben' has no key"));
  EXPECT_THAT(all, HasSubstr("q.yaml:10:26: there is no person 'bem'"));
  EXPECT_THAT(all, HasSubstr("did you mean 'ben'?"));
  EXPECT_THAT(all, HasSubstr("role 'decide' needs 3 people and has 2"));
  EXPECT_THAT(all, HasSubstr("did you mean 'sign'?"));
  EXPECT_THAT(all, HasSubstr("person 'ana' is there twice"));
  EXPECT_THAT(all, HasSubstr("did you mean 'scale-48'?"));
  EXPECT_THAT(all, HasSubstr("release 'two' needs no gate"));
}

TEST(People, AnAliasOrABombIsRefusedBeforeItUnfolds) {
  EXPECT_THAT(faults("people:\n"
                     "  ana: &a {keys: [{file: a.pub}]}\n"
                     "  ben: *a\n"),
              HasSubstr("q.yaml:6:"));
  std::string bomb = "people:\n  a0: &a0 {keys: [{file: a.pub}]}\n";
  for (int i = 1; i < 30; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    bomb += "  a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before + ", " + before +
            "]\n";
  }
  EXPECT_THAT(faults(bomb), HasSubstr("q.yaml:6:"));
  EXPECT_THAT(faults("people: {ana: {keys: [{file: a.pub}]}, ana: {keys: [{file: b.pub}]}}\n"),
              HasSubstr("ana"));
}

TEST(People, AGateKeepsItsPolicyDigestWhoeverMaySign) {
  const auto without = read("").value();
  const auto with =
      read("people: {ana: {keys: [{file: a.pub}]}}\nroles: {sign: {people: [ana]}}\n").value();
  EXPECT_EQ(policy_digest(without.gates[0]), policy_digest(with.gates[0]));
}

}  // namespace
}  // namespace qualify::policy
