#include "qualify/certify/statement.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "qualify/ledger/ledger.hpp"
#include "support/fake_clock.hpp"
#include "support/temp_folder.hpp"

namespace qualify::certify {
namespace {

GateResult passed() {
  GateResult result;
  result.gate.name = "det";
  result.gate.arm = "deterministic";
  result.gate.required_metrics = {"lm loss"};
  result.judgement.verdict = policy::Verdict::pass;
  result.judgement.level = exactness::Level::e1;
  result.judgement.reasons = {"2 runs are equal"};
  result.judgement.limits = {"equality at E1"};
  result.judgement.pairs = {{"a1", "a2", exactness::Comparison(), std::nullopt}};
  result.bundle_digest = sha256("bundle");
  result.bundle_name = "toy";
  result.plan_digest = sha256("plan");
  result.runs = {{"a1", "deterministic", 1, sha256("e1"), "17", {"n1"}},
                 {"a2", "deterministic", 2, sha256("e2"), "19", {"n1"}}};
  result.scheduler = "local";
  result.qualification = "det-1";
  return result;
}

std::string refusal(const GateResult& result) {
  const auto statement = gate_statement(result);
  return statement ? "taken" : name_of(statement.error().code);
}

TEST(GateStatement, NamesBundlePolicyPlanAndEveryPieceOfEvidence) {
  const GateResult result = passed();
  const Json statement = gate_statement(result).value();
  EXPECT_EQ(statement.at("_type"), "https://in-toto.io/Statement/v1");
  EXPECT_EQ(statement.at("subject"),
            Json::array({{{"name", "toy"}, {"digest", {{"sha256", sha256("bundle").hex()}}}}}));
  const Json& predicate = statement.at("predicate");
  EXPECT_EQ(predicate.at("result"), "PASSED");
  EXPECT_EQ(predicate.at("passedTests"), Json::array({"det: a1 and a2"}));
  EXPECT_TRUE(predicate.at("failedTests").empty());
  ASSERT_EQ(predicate.at("configuration").size(), 4U);
  EXPECT_EQ(predicate.at("configuration")[0].at("digest").at("sha256"),
            policy_digest(result.gate).hex());
  const Json& own = predicate.at("qualify");
  EXPECT_EQ(own.at("verdict"), "pass");
  EXPECT_EQ(own.at("level"), "E1");
  EXPECT_EQ(own.at("plan"), sha256("plan").str());
  EXPECT_EQ(own.at("evidence")[1].at("evidence"), sha256("e2").str());
  EXPECT_EQ(own.at("evidence")[1].at("attempt"), 2);
  EXPECT_EQ(own.at("evidence")[1].at("job"), "19");
  EXPECT_EQ(own.at("policy").at("gate"), to_json(result.gate));
  EXPECT_EQ(own.at("scope").at("recipe"), "debug");
}

TEST(GateStatement, OnlyAPassIsCertified) {
  for (const auto verdict : {policy::Verdict::fail, policy::Verdict::inconclusive,
                             policy::Verdict::needs_decision, policy::Verdict::blocked}) {
    GateResult result = passed();
    result.judgement.verdict = verdict;
    EXPECT_EQ(refusal(result), "refused");
  }
}

TEST(GateStatement, ADirtyBundleNeverIs) {
  GateResult result = passed();
  result.bundle_dirty = true;
  EXPECT_EQ(refusal(result), "refused");
  EXPECT_NE(gate_statement(result).error().message.find("dirty"), std::string::npos);
}

TEST(GateStatement, WhatItRestsOnMustBeThere) {
  GateResult result = passed();
  result.runs.clear();
  EXPECT_EQ(refusal(result), "invalid-input");
  result = passed();
  result.runs[1].evidence = Digest();
  EXPECT_EQ(refusal(result), "invalid-input");
  result = passed();
  result.judgement.level.reset();
  EXPECT_EQ(refusal(result), "invalid-input");
  result = passed();
  result.runs.pop_back();
  EXPECT_EQ(refusal(result), "invalid-input");
}

TEST(GateStatement, RunsInOneAllocationAreAWarning) {
  GateResult result = passed();
  result.runs[1].job_id = result.runs[0].job_id;
  const Json predicate = gate_statement(result)->at("predicate");
  EXPECT_EQ(predicate.at("result"), "WARNED");
  EXPECT_EQ(predicate.at("warnedTests").size(), 1U);
  EXPECT_TRUE(predicate.at("passedTests").empty());
}

TEST(GateStatement, APerformancePairSharesItsAllocationOnPurpose) {
  GateResult result = passed();
  result.gate.kind = policy::GateKind::performance;
  result.judgement.level.reset();
  result.judgement.pairs = {{"a1", "a2", std::nullopt, 1.004}};
  result.runs[1].job_id = result.runs[0].job_id;
  const Json predicate = gate_statement(result)->at("predicate");
  EXPECT_EQ(predicate.at("result"), "PASSED");
  EXPECT_EQ(predicate.at("qualify").at("pairs")[0].at("step_time_ratio"), 1.004);
}

TEST(GateStatement, AnOverheadIsSignedWithItsBounds) {
  GateResult result = passed();
  EXPECT_TRUE(
      gate_statement(result).value().at("predicate").at("qualify").at("overhead").is_null());
  result.gate.kind = policy::GateKind::performance;
  result.judgement.overhead.emplace();
  result.judgement.overhead->estimate = statistics::Estimate{0.004, 0.001, 3};
  result.judgement.overhead->interval = result.judgement.overhead->estimate->interval(0.95);
  const Json own = gate_statement(result).value().at("predicate").at("qualify");
  EXPECT_NEAR(own.at("overhead").at("ratio").get<double>(), 1.004, 1e-4);
  EXPECT_LT(own.at("overhead").at("interval_95").at("low").get<double>(), 1.004);
  EXPECT_TRUE(own.at("overhead").contains("one_sided_bounds"));
}

TEST(GateStatement, ClaimsNoMoreThanItsLevel) {
  GateResult result = passed();
  using exactness::Level;
  for (const Level level : {Level::e0, Level::e1, Level::e2, Level::e3, Level::e4}) {
    result.judgement.level = level;
    result.gate.level = Level::e0;
    const Json own = gate_statement(result).value().at("predicate").at("qualify");
    EXPECT_EQ(own.at("claim"), exactness::claim_of(level));
    const bool exact = own.at("claim").get<std::string>().find("exact") != std::string::npos;
    EXPECT_EQ(exact, level == Level::e4) << own.at("claim");
  }
  result.gate.kind = policy::GateKind::performance;
  result.judgement.level.reset();
  EXPECT_TRUE(gate_statement(result)->at("predicate").at("qualify").at("claim").is_null());
}

TEST(GateStatement, APassBelowTheGatesLevelIsNone) {
  GateResult result = passed();
  result.gate.level = exactness::Level::e4;
  EXPECT_EQ(refusal(result), "invalid-input");
}

TEST(GateStatement, ARecipeBelowTheGatesIsRefused) {
  GateResult result = passed();
  result.gate.recipe = spec::RecipeClass::production;
  for (const auto recipe : {spec::RecipeClass::debug, spec::RecipeClass::proxy}) {
    result.recipe = recipe;
    EXPECT_EQ(refusal(result), "refused");
  }
  result.recipe = spec::RecipeClass::production;
  EXPECT_EQ(refusal(result), "taken");
}

TEST(GateStatement, CitesTheBaselineThatItWasHeldAgainst) {
  GateResult result = passed();
  result.gate.kind = policy::GateKind::baseline;
  result.judgement.pairs.push_back(
      {policy::kBaselineRun, "a1", exactness::Comparison(), std::nullopt});
  EXPECT_EQ(refusal(result), "invalid-input") << "there is none";
  result.baseline = plan::Baseline{"v3", "r", "c", sha256("theirs"), "a", sha256("e0")};
  const Json predicate = gate_statement(result).value().at("predicate");
  EXPECT_EQ(predicate.at("qualify").at("baseline").at("evidence"), sha256("e0").str());
  EXPECT_EQ(predicate.at("configuration")[4].at("name"), "baseline/v3");
  EXPECT_EQ(predicate.at("passedTests")[1], "det: baseline and a1");
}

TEST(GateStatement, TheLedgerTakesIt) {
  const test::TempFolder folder;
  const test::FakeClock clock;
  auto database = journal::Database::open(folder / "a.db").value();
  const auto signer = ledger::create_key(folder / "key.pem").value();
  const GateResult result = passed();
  const auto record = ledger::Ledger(database).append(*signer, ledger::RecordKind::certificate,
                                                      result.gate.name, result.bundle_digest,
                                                      clock.now(), gate_statement(result).value());
  ASSERT_TRUE(record) << record.error().describe();
  EXPECT_TRUE(ledger::verify_record(*record));
}

}  // namespace
}  // namespace qualify::certify
