#include "standing_fixture.hpp"

namespace qualify::standing {
namespace {

using certify::Decision;
using policy::Verdict;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr auto kDay = std::chrono::hours(24);

TEST_F(StandingTest, AGateThatWasNeverRunIsOpenAndSaysHowToRunIt) {
  EXPECT_EQ(status("small"), "open");
  EXPECT_EQ(of("small").next, "qualify run small --bundle BUNDLE");
  EXPECT_THAT(why("small"), HasSubstr("has not been run"));
}

TEST_F(StandingTest, ACertificateClosesAGateUntilItIsTooOld) {
  judged("small", Verdict::pass);
  EXPECT_EQ(status("small"), "pass");
  EXPECT_EQ(of("small").until, clock.now() + 8 * kDay);
  EXPECT_THAT(of("small").next, IsEmpty());
  clock.advance(8 * kDay - std::chrono::seconds(1));
  EXPECT_EQ(status("small"), "pass");
  clock.advance(std::chrono::seconds(1));
  EXPECT_EQ(status("small"), "stale");
  EXPECT_THAT(why("small"), HasSubstr("older than 8 days"));
}

TEST_F(StandingTest, ThePolicyThatWasChangedAfterTheRunIsANewVersionOfTheGate) {
  judged("small", Verdict::pass);
  declare("  small: {kind: repeatability, arm: det, metrics: [loss], max_age: 8d, runs: 3}\n");
  EXPECT_EQ(status("small"), "stale");
  EXPECT_THAT(why("small"), HasSubstr("another version: its policy was changed after small-1"));
}

TEST_F(StandingTest, ANewBundleMakesOldResultsStale) {
  judged("small", Verdict::pass, "one");
  seal("one");
  EXPECT_EQ(status("small"), "pass");
  seal("two");
  EXPECT_EQ(status("small"), "stale");
  EXPECT_THAT(why("small"), HasSubstr("the bundle moved on"));
  seal("one");  // sealed again: that is what is meant
  EXPECT_EQ(status("small"), "pass");
}

TEST_F(StandingTest, ABundleOfAnotherNameOrClassIsNoSuccessor) {
  judged("small", Verdict::pass, "one");
  seal("one");
  seal("two", "other");
  seal("three", "toy", spec::RecipeClass::production);
  EXPECT_EQ(status("small"), "pass");
}

TEST_F(StandingTest, ANewBundleThatIsUnderWayShowsAsRunning) {
  judged("small", Verdict::pass, "one");
  run::QualificationState later = *facts.gates["small"].finished;
  later.name = "small-9";
  later.verdict.reset();
  later.plan.bundle = sha256("two");
  later.runs.emplace_back();
  later.runs.back().attempts.emplace_back();
  facts.gates["small"].later = later;
  EXPECT_EQ(status("small"), "running");
  EXPECT_THAT(why("small"), HasSubstr("0 of 1 runs ended"));
  EXPECT_THAT(why("small"), HasSubstr("moved on"));
  // The same bundle once more takes nothing from the pass.
  facts.gates["small"].later->plan.bundle = sha256("one");
  EXPECT_EQ(status("small"), "pass");
  EXPECT_THAT(why("small"), HasSubstr("again running"));
}

TEST_F(StandingTest, ADamagedOrForeignCertificateClosesNothing) {
  const std::string id = judged("small", Verdict::pass).certificate;
  facts.certificates[id].fault = "signed by a key that is not this state's";
  EXPECT_EQ(status("small"), "blocked");
  facts.certificates[id].fault.clear();
  facts.certificates[id].bundles = {{"toy", sha256("another")}};
  EXPECT_THAT(why("small"), HasSubstr("the journal disagree"));
  EXPECT_EQ(status("small"), "blocked");
  facts.certificates.erase(id);
  EXPECT_THAT(why("small"), HasSubstr("is not in the ledger"));
}

TEST_F(StandingTest, APassWithoutCertificateIsOpen) {
  judged("small", Verdict::pass).finished->certificate.clear();
  EXPECT_EQ(status("small"), "open");
  EXPECT_THAT(why("small"), HasSubstr("dirty"));
}

TEST_F(StandingTest, ARevokedCertificateIsStale) {
  const std::string id = judged("small", Verdict::pass).certificate;
  revoke("ana", id);
  EXPECT_EQ(status("small"), "stale");
  EXPECT_THAT(why("small"), HasSubstr("was revoked by ana on 2026-01-01 00:00 UTC: found a fault"));
}

TEST_F(StandingTest, ARevocationByWhoeverMayNotRevokeIsNone) {
  const std::string id = judged("small", Verdict::pass).certificate;
  revoke("ben", id);
  revoke("mallory", id);
  EXPECT_EQ(status("small"), "pass");
}

TEST_F(StandingTest, ARevocationCountsFromItsPlaceInTheLog) {
  const std::string first = sha256("first").hex();
  const std::string second = sha256("second").hex();
  revoke("ana", first);
  const auto own = revoke("mallory", second);
  const auto revoked =
      revoked_records(facts.records, keys["mallory"]->public_key().key_id(), nullptr);
  EXPECT_EQ(revoked.size(), 1U) << "nobody's keys are known, so nobody's word counts";
  EXPECT_EQ(revoked.at(second).index, own.index);
}

TEST_F(StandingTest, WhatTheStateItselfRevokesIsRevoked) {
  const std::string id = judged("small", Verdict::pass).certificate;
  facts.own_key = keys["mallory"]->public_key().key_id();
  revoke("mallory", id);
  EXPECT_EQ(status("small"), "stale");
}

class CostTest : public StandingTest {
 protected:
  CostTest() {
    GateFacts& of = judged("cost", Verdict::needs_decision);
    of.interval = certify::Interval{1.021, 1.043};
  }
};

TEST_F(CostTest, ADecisionOnExactlyThisResultClosesIt) {
  EXPECT_EQ(status("cost"), "needs-decision");
  EXPECT_THAT(of("cost").next, HasSubstr("qualify decide cost --accept"));
  const auto record = decide("ben", decision_on(facts.gates["cost"], Decision::What::accept));
  EXPECT_EQ(status("cost"), "pass");
  EXPECT_THAT(why("cost"), HasSubstr("by decision: accepted by ben"));
  EXPECT_THAT(of("cost").records, ::testing::ElementsAre(record.id));
}

TEST_F(CostTest, ADecisionOnAnotherIntervalBundleOrQualificationDoesNotCount) {
  const auto good = decision_on(facts.gates["cost"], Decision::What::accept);
  auto other = good;
  other.interval = certify::Interval{1.01, 1.02};
  decide("ana", other);
  EXPECT_THAT(why("cost"), HasSubstr("it names another interval"));
  other = good;
  other.interval.reset();
  decide("ana", other);
  other = good;
  other.bundle = sha256("another");
  decide("ana", other);
  EXPECT_THAT(why("cost"), HasSubstr("it names another bundle, policy or judgement"));
  other = good;
  other.qualification = "cost-0";
  decide("ana", other);
  other = good;
  other.policy = sha256("another");
  decide("ana", other);
  other = good;
  other.judgement = sha256("another");
  decide("ana", other);
  EXPECT_EQ(status("cost"), "needs-decision");
}

TEST_F(CostTest, ADecisionBySomebodyWithoutTheRoleDoesNotCount) {
  const auto accept = decision_on(facts.gates["cost"], Decision::What::accept);
  decide("eve", accept);
  decide("mallory", accept);
  EXPECT_EQ(status("cost"), "needs-decision");
  EXPECT_THAT(why("cost"), HasSubstr("eve does not have the role decide"));
  EXPECT_THAT(why("cost"), HasSubstr("is nobody's"));
}

TEST_F(CostTest, ADecisionInSomebodyElsesNameDoesNotCount) {
  auto accept = decision_on(facts.gates["cost"], Decision::What::accept);
  accept.person = "ana";
  say("ben", RecordKind::decision, "cost", accept.bundle, accept);
  EXPECT_EQ(status("cost"), "needs-decision");
  EXPECT_THAT(why("cost"), HasSubstr("ben signed it in the name of ana"));
}

TEST_F(CostTest, AKeyThatWasRetiredBeforeDoesNotCount) {
  clock.advance(200 * kDay);  // ana's key ended on 2026-06-01
  decide("ana", decision_on(facts.gates["cost"], Decision::What::accept));
  EXPECT_EQ(status("cost"), "needs-decision");
  EXPECT_THAT(why("cost"), HasSubstr("was not ana's at 2026-07-20"));
}

TEST_F(CostTest, TwoOfTwoAreNeededAndNobodyCountsTwice) {
  deciders = 2;
  declare(
      "  small: {kind: repeatability, arm: det, metrics: [loss]}\n"
      "  cost: {kind: performance, arms: {deterministic: det, nondeterministic: fast}}\n");
  auto accept = decision_on(facts.gates["cost"], Decision::What::accept);
  decide("ana", accept);
  accept.reason = "still";
  decide("ana", accept);
  EXPECT_EQ(status("cost"), "needs-decision");
  EXPECT_THAT(why("cost"), HasSubstr("accepted by ana: 1 of 2"));
  decide("ben", accept);
  EXPECT_EQ(status("cost"), "pass");
  EXPECT_THAT(of("cost").records, SizeIs(2));
}

TEST_F(CostTest, ARejectionIsHeardBeforeAnAcceptance) {
  decide("ana", decision_on(facts.gates["cost"], Decision::What::accept));
  decide("ben", decision_on(facts.gates["cost"], Decision::What::reject));
  EXPECT_EQ(status("cost"), "fail");
  // A person's last word counts.
  clock.advance(std::chrono::seconds(1));
  decide("ben", decision_on(facts.gates["cost"], Decision::What::accept));
  EXPECT_EQ(status("cost"), "pass");
}

TEST_F(CostTest, ARevokedDecisionLeavesTheQuestionOpen) {
  const auto record = decide("ben", decision_on(facts.gates["cost"], Decision::What::accept));
  EXPECT_EQ(status("cost"), "pass");
  revoke("ana", record.id);
  EXPECT_EQ(status("cost"), "needs-decision");
}

TEST_F(CostTest, TakingBackTheLastWordDoesNotBringBackTheOneBefore) {
  decide("ana", decision_on(facts.gates["cost"], Decision::What::accept));
  clock.advance(std::chrono::seconds(1));
  const auto rejection = decide("ana", decision_on(facts.gates["cost"], Decision::What::reject));
  EXPECT_EQ(status("cost"), "fail");
  revoke("ana", rejection.id);
  EXPECT_EQ(status("cost"), "needs-decision");
}

TEST_F(CostTest, ADecisionSaysNothingOfALaterQualification) {
  decide("ben", decision_on(facts.gates["cost"], Decision::What::accept));
  judged("cost", Verdict::needs_decision).interval = certify::Interval{1.021, 1.043};
  EXPECT_EQ(status("cost"), "needs-decision");
}

TEST_F(CostTest, NoDecisionMakesAFailureAPass) {
  judged("cost", Verdict::fail);
  decide("ben", decision_on(facts.gates["cost"], Decision::What::accept));
  decide("ben", decision_on(facts.gates["cost"], Decision::What::convergence));
  EXPECT_EQ(status("cost"), "fail");
}

TEST_F(StandingTest, AWaiverHoldsUntilItsEnd) {
  judged("small", Verdict::fail);
  const Time until = clock.now() + 3 * kDay;
  const auto record = waive("ana", "small", until);
  EXPECT_EQ(status("small"), "waived");
  EXPECT_EQ(of("small").until, until);
  EXPECT_THAT(of("small").records, ::testing::ElementsAre(record.id));
  EXPECT_THAT(why("small"), HasSubstr("waived by ana until 2026-01-04 00:00 UTC"));
  clock.set(until);
  EXPECT_EQ(status("small"), "fail");
  EXPECT_THAT(why("small"), HasSubstr("ended on 2026-01-04"));
}

TEST_F(StandingTest, AWaiverIsOfOneVersionAndOneBundle) {
  judged("small", Verdict::fail);
  waive("ana", "small", clock.now() + kDay, sha256("another"));
  EXPECT_EQ(status("small"), "fail");
  EXPECT_THAT(why("small"), HasSubstr("for another bundle"));
  waive("ana", "small", clock.now() + kDay, sha256("one"));
  EXPECT_EQ(status("small"), "waived");
  declare("  small: {kind: repeatability, arm: det, metrics: [loss], runs: 3}\n");
  EXPECT_EQ(status("small"), "stale");
  EXPECT_THAT(why("small"), HasSubstr("another version of the gate"));
}

TEST_F(StandingTest, AWaiverByWhoeverMayNotWaiveIsNone) {
  judged("small", Verdict::fail);
  waive("eve", "small", clock.now() + kDay);
  EXPECT_EQ(status("small"), "fail");
}

TEST_F(StandingTest, NothingThatPassesIsWaived) {
  judged("small", Verdict::pass);
  waive("ana", "small", clock.now() + kDay);
  EXPECT_EQ(status("small"), "pass");
}

TEST_F(StandingTest, WithoutAFileOfGatesTheJournalsAreShown) {
  judged("small", Verdict::pass);
  qualification = {};
  const auto all = standings(qualification, facts, clock.now());
  ASSERT_THAT(all, SizeIs(1));
  EXPECT_EQ(all[0].status, Status::pass);
}

TEST_F(StandingTest, OneRecordIsNotTakenForAnother) {
  // A waiver's words under the kind of a decision, and the other way round.
  judged("cost", Verdict::needs_decision).interval = certify::Interval{1.02, 1.04};
  const auto accept = decision_on(facts.gates["cost"], Decision::What::accept);
  say("ana", RecordKind::waiver, "cost", accept.bundle, accept);
  say("ana", RecordKind::decision, "cost", Digest(),
      certify::Waiver{"cost", policy_digest(gate("cost")), {}, "", clock.now() + kDay, "ana", "x"});
  EXPECT_EQ(status("cost"), "needs-decision");
}

}  // namespace
}  // namespace qualify::standing
