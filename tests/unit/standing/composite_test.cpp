#include <fstream>

#include "standing_fixture.hpp"

namespace qualify::standing {
namespace {

using policy::Verdict;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr auto kDay = std::chrono::hours(24);

constexpr const char* kGates =
    "  small: {kind: repeatability, arm: det, metrics: [loss], max_age: 8d}\n"
    "  cost: {kind: performance, arms: {deterministic: det, nondeterministic: fast}}\n"
    "  matrix: {kind: coverage, max_age: 20d, models: {toy: {correctness: small, performance: "
    "cost}}}\n"
    "  large: {kind: scale, topology: {nodes: 384, gpus_per_node: 8}, arm: det, metrics: [loss]}\n";
constexpr const char* kRelease = "releases:\n  december: {gates: [small, matrix]}\n";

class CompositeTest : public StandingTest {
 protected:
  CompositeTest() { declare(kGates, kRelease); }

  void close_parts() {
    judged("small", Verdict::pass);
    judged("cost", Verdict::pass);
  }
  std::string certify_matrix() {
    const std::string id =
        certify("matrix", {{"toy", sha256("one")}},
                {facts.gates["small"].certificate, facts.gates["cost"].certificate});
    facts.gates["matrix"].certificate = id;
    return id;
  }
  ReleaseStanding release() const {
    return release_standings(qualification, facts, standings(qualification, facts, clock.now()))
        .at(0);
  }
  std::string release_why() const {
    std::string all;
    for (const std::string& reason : release().reasons) all += reason + "\n";
    return all;
  }
  ledger::Record approve(const std::string& person, const certify::ReleaseContent& content) {
    return say(person, RecordKind::approval, "december", Digest(),
               certify::Approval{content, sha256("yaml"), person, {}});
  }
  ledger::Record sign_off() {
    const ReleaseStanding now = release();
    facts.own_key = keys["mallory"]->public_key().key_id();
    return say("mallory", RecordKind::signoff, "december", Digest(),
               certify::SignOff{now.content,
                                sha256("yaml"),
                                {},
                                now.approvals,
                                now.people,
                                now.needed,
                                facts.own_key,
                                clock.now()});
  }
};

TEST_F(CompositeTest, ItClosesByACertificateOnceEveryPartIsClosed) {
  EXPECT_EQ(status("matrix"), "open");
  EXPECT_THAT(why("matrix"), HasSubstr("0 of 2 are closed"));
  EXPECT_THAT(of("matrix").next, HasSubstr("qualify run small"));
  close_parts();
  EXPECT_EQ(status("matrix"), "open");
  EXPECT_THAT(why("matrix"), HasSubstr("no certificate says so yet"));
  EXPECT_EQ(of("matrix").next, "qualify run matrix");
  const std::string id = certify_matrix();
  EXPECT_EQ(status("matrix"), "pass");
  EXPECT_EQ(of("matrix").certificate, id);
  ASSERT_THAT(of("matrix").parts, SizeIs(2));
  EXPECT_EQ(of("matrix").parts[0].name, "toy/correctness");
}

TEST_F(CompositeTest, ACellGoesStaleByAgeByNewBundleAndByNewPolicy) {
  close_parts();
  certify_matrix();
  clock.advance(8 * kDay);
  EXPECT_EQ(status("matrix"), "stale");
  EXPECT_THAT(why("matrix"), HasSubstr("toy/correctness (small) is stale: older than 8 days"));
  close_parts();
  certify_matrix();
  EXPECT_EQ(status("matrix"), "pass");
  seal("one");
  seal("two");
  EXPECT_EQ(status("matrix"), "stale");
  EXPECT_THAT(why("matrix"), HasSubstr("moved on"));
  facts.bundles.clear();
  EXPECT_EQ(status("matrix"), "pass");
  declare(
      "  small: {kind: repeatability, arm: det, metrics: [loss], max_age: 8d, runs: 3}\n"
      "  cost: {kind: performance, arms: {deterministic: det, nondeterministic: fast}}\n"
      "  matrix: {kind: coverage, max_age: 20d, models: {toy: {correctness: small, performance: "
      "cost}}}\n");
  EXPECT_EQ(status("matrix"), "stale");
  EXPECT_THAT(why("matrix"), HasSubstr("another version"));
}

TEST_F(CompositeTest, ItsPartsMustBeAsYoungAsItAsksFor) {
  close_parts();  // cost has no age of its own
  certify_matrix();
  EXPECT_EQ(of("matrix").until, clock.now() + 8 * kDay);
  clock.advance(12 * kDay);
  judged("small", Verdict::pass);
  EXPECT_EQ(status("matrix"), "pass");
  clock.advance(8 * kDay - std::chrono::seconds(1));
  judged("small", Verdict::pass);
  EXPECT_EQ(status("matrix"), "pass");
  clock.advance(std::chrono::seconds(1));
  EXPECT_EQ(status("cost"), "pass");
  EXPECT_EQ(status("matrix"), "stale");
  EXPECT_THAT(why("matrix"), HasSubstr("toy/performance (cost) is stale: older than 20 days"));
}

TEST_F(CompositeTest, ANewerPassOfAPartTakesNothingFromIt) {
  close_parts();
  certify_matrix();
  clock.advance(kDay);
  judged("small", Verdict::pass);
  EXPECT_EQ(status("matrix"), "pass");
  judged("small", Verdict::pass, "two");
  EXPECT_EQ(status("matrix"), "stale");
  EXPECT_THAT(why("matrix"), HasSubstr("toy/correctness is closed for another bundle now"));
}

TEST_F(CompositeTest, ANewerPassOfAPartDoesNotMakeTheOneThatIsCitedYounger) {
  close_parts();
  certify_matrix();
  clock.advance(14 * kDay);
  close_parts();
  EXPECT_EQ(status("matrix"), "pass");
  clock.advance(7 * kDay);
  EXPECT_EQ(status("small"), "pass");
  EXPECT_EQ(status("matrix"), "stale");
  EXPECT_THAT(why("matrix"), HasSubstr("too old"));
}

TEST_F(CompositeTest, AFailedPartFailsIt) {
  close_parts();
  certify_matrix();
  judged("small", Verdict::fail);
  EXPECT_EQ(status("matrix"), "fail");
  EXPECT_THAT(of("matrix").certificate, IsEmpty());
}

TEST_F(CompositeTest, AWaivedPartIsNoProof) {
  judged("small", Verdict::fail);
  judged("cost", Verdict::pass);
  waive("ana", "small", clock.now() + kDay);
  EXPECT_EQ(status("small"), "waived");
  EXPECT_EQ(status("matrix"), "open");
}

TEST_F(CompositeTest, ASmallerScaleIsSupportingEvidenceAndClosesNothing) {
  GateFacts& small = judged("small", Verdict::pass);
  small.finished->plan.topology.nodes = 48;
  small.finished->plan.topology.gpus_per_node = 8;
  EXPECT_EQ(status("large"), "open");
  EXPECT_THAT(of("large").supporting, ElementsAre(HasSubstr("small passed on 48 nodes x 8 GPUs")));
  // And what is as large is no smaller pass.
  small.finished->plan.topology.nodes = 384;
  EXPECT_THAT(of("large").supporting, IsEmpty());
}

TEST_F(CompositeTest, ARevocationMakesEverythingStaleThatRestsOnIt) {
  close_parts();
  certify_matrix();
  approve("ben", release().content);
  approve("eve", release().content);
  sign_off();
  ASSERT_EQ(name_of(release().status), std::string("signed-off")) << release_why();
  revoke("ana", facts.gates["small"].certificate);
  EXPECT_EQ(status("small"), "stale");
  EXPECT_EQ(status("matrix"), "stale");
  EXPECT_EQ(release().status, ReleaseStanding::Status::stale);
  EXPECT_THAT(release_why(), HasSubstr("was revoked by ana"));
}

TEST_F(CompositeTest, ACertificateWhosePartIsRevokedIsStaleWhateverThePartIsNow) {
  close_parts();
  const std::string first = facts.gates["small"].certificate;
  certify_matrix();
  judged("small", Verdict::pass);
  revoke("ana", first);
  EXPECT_EQ(status("small"), "pass");
  EXPECT_EQ(status("matrix"), "stale");
  EXPECT_THAT(why("matrix"), HasSubstr("rests on " + first.substr(0, 12)));
}

TEST_F(CompositeTest, AReleaseIsReadyWhenAllItsGatesAreClosed) {
  EXPECT_EQ(release().status, ReleaseStanding::Status::open);
  EXPECT_THAT(release_why(), HasSubstr("0 of 2 gates are closed"));
  close_parts();
  certify_matrix();
  EXPECT_EQ(release().status, ReleaseStanding::Status::ready);
  EXPECT_EQ(release().needed, 2U);
  EXPECT_THAT(release().next, HasSubstr("qualify signoff december"));
  EXPECT_EQ(release().content.bundles.at("toy"), sha256("one"));
  EXPECT_THAT(release().content.gates.at(1).rests_on, SizeIs(2));
}

TEST_F(CompositeTest, OneBundleNameIsOneBundleInAllGates) {
  close_parts();
  certify_matrix();
  facts.certificates[facts.gates["matrix"].certificate].bundles = {{"toy", sha256("other")}};
  EXPECT_EQ(release().status, ReleaseStanding::Status::open);
  EXPECT_THAT(release_why(), HasSubstr("bundle toy is not one and the same in all gates"));
}

TEST_F(CompositeTest, NobodysApprovalCountsTwiceAndNoStrangersAtAll) {
  close_parts();
  certify_matrix();
  const auto content = release().content;
  approve("ben", content);
  clock.advance(std::chrono::seconds(1));
  say("ben", RecordKind::approval, "december", Digest(),
      certify::Approval{content, sha256("yaml"), "ben", "again"});
  approve("mallory", content);
  EXPECT_EQ(release().status, ReleaseStanding::Status::ready);
  EXPECT_THAT(release().people, ElementsAre("ben"));
  EXPECT_THAT(release_why(), HasSubstr("is nobody's"));
}

TEST_F(CompositeTest, AnApprovalOfSomethingElseDoesNotCount) {
  close_parts();
  certify_matrix();
  approve("ben", release().content);
  clock.advance(kDay);
  close_parts();
  certify_matrix();
  approve("eve", release().content);
  EXPECT_THAT(release().people, ElementsAre("eve"));
  EXPECT_THAT(release_why(), HasSubstr("1 of 2 signatures: eve"));
}

TEST_F(CompositeTest, ASignOffStandsWhileNewerResultsComeIn) {
  close_parts();
  certify_matrix();
  approve("ben", release().content);
  approve("eve", release().content);
  const auto record = sign_off();
  clock.advance(9 * kDay);
  EXPECT_EQ(status("small"), "stale");
  EXPECT_EQ(release().status, ReleaseStanding::Status::signed_off) << release_why();
  EXPECT_THAT(release_why(), HasSubstr("no longer the newest"));
  // Whoever takes a signature back takes the sign-off with it.
  revoke("ana", release().signoff);
  EXPECT_EQ(release().status, ReleaseStanding::Status::stale);
}

TEST_F(CompositeTest, WhatWasSignedForARevokedSignOffDoesNotCountForAnother) {
  close_parts();
  certify_matrix();
  approve("ben", release().content);
  approve("eve", release().content);
  revoke("ana", sign_off().id);
  EXPECT_EQ(release().status, ReleaseStanding::Status::stale);
  EXPECT_THAT(release().people, ::testing::IsEmpty());
  // The same people may say it anew.
  clock.advance(std::chrono::seconds(1));
  approve("ben", release().content);
  EXPECT_THAT(release().people, ::testing::ElementsAre("ben"));
}

TEST_F(CompositeTest, AKeysTimeIsPartOfWhoPeopleAre) {
  const auto digest_with = [&](const std::string& first, const std::string& second) {
    const auto read = policy::parse_qualification(
        "schema_version: 1\ngates:\n  g: {kind: repeatability, arm: a, metrics: [m]}\n"
        "people:\n  ana: {keys: [{file: ana.pem.pub" +
            first + "}, {file: ben.pem.pub" + second + "}]}\n",
        folder / "q.yaml");
    return people_digest(load_people(read.value(), keys_beside(folder / "q.yaml")).value());
  };
  const std::string until = ", until: 2026-06-01T00:00:00Z";
  EXPECT_NE(digest_with(until, ""), digest_with("", until));
}

TEST_F(CompositeTest, ASignOffByAForeignKeyIsNone) {
  close_parts();
  certify_matrix();
  approve("ben", release().content);
  approve("eve", release().content);
  sign_off();
  facts.own_key = "this state's";
  EXPECT_EQ(release().status, ReleaseStanding::Status::stale);
  EXPECT_THAT(release_why(), HasSubstr("by a key that is not this state's"));
}

TEST_F(CompositeTest, PeopleAreTheSameHoweverTheFileIsLaidOut) {
  const Digest before = people_digest(*facts.people);
  declare(kGates);
  EXPECT_EQ(people_digest(*facts.people), before);
  deciders = 2;
  declare(kGates);
  EXPECT_NE(people_digest(*facts.people), before);
}

TEST_F(CompositeTest, AKeyThatIsNoneIsNamedWithItsPlace) {
  std::ofstream(folder / "bad.pub") << "no key\n";
  const auto broken = policy::parse_qualification(
      std::string("schema_version: 1\ngates:\n") + kGates +
          "people: {ana: {keys: [{file: bad.pub}]}, ben: {keys: [{file: missing.pub}]}}\n",
      folder / "q.yaml");
  ASSERT_TRUE(broken) << broken.error().describe();
  const auto people = load_people(*broken, keys_beside(broken->file));
  ASSERT_FALSE(people);
  EXPECT_THAT(people.error().describe(), HasSubstr("q.yaml:7:30: key of ana"));
  EXPECT_THAT(people.error().describe(), HasSubstr("key of ben"));
}

}  // namespace
}  // namespace qualify::standing
