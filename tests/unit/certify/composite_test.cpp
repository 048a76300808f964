#include "qualify/certify/composite.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "qualify/certify/statement.hpp"

namespace qualify::certify {
namespace {

CompositeResult closed() {
  CompositeResult result;
  result.gate.name = "matrix";
  result.gate.kind = policy::GateKind::coverage;
  result.gate.max_age = std::chrono::hours(192);
  result.gate.coverage = {{"toy", "repeat", "cost"}};
  result.parts = {{"toy/correctness", "repeat", "c1", {}}, {"toy/performance", "cost", "", {"d1"}}};
  result.bundles = {{"toy", sha256("one")}, {"toy", sha256("one")}, {"other", sha256("two")}};
  result.reasons = {"all 2 parts are closed"};
  return result;
}

std::string refusal(const CompositeResult& result) {
  const auto statement = composite_statement(result);
  return statement ? "taken" : statement.error().message;
}

TEST(CompositeStatement, NamesEachPartAndEachBundleOnce) {
  const Json statement = composite_statement(closed()).value();
  ASSERT_EQ(statement.at("subject").size(), 2U);
  const Json& own = statement.at("predicate").at("qualify");
  EXPECT_EQ(own.at("parts")[0].at("certificate"), "c1");
  EXPECT_TRUE(own.at("parts")[1].at("certificate").is_null());
  EXPECT_EQ(own.at("parts")[1].at("decisions"), Json::array({"d1"}));
  EXPECT_TRUE(own.at("claim").is_null()) << "it compares nothing itself";
  EXPECT_EQ(own.at("policy").at("digest"), policy_digest(closed().gate).str());
}

TEST(CompositeStatement, IsReadBack) {
  const auto says = read_certified(composite_statement(closed())->at("predicate"));
  ASSERT_TRUE(says) << says.error().describe();
  EXPECT_EQ(says->parts, closed().parts);
  ASSERT_TRUE(says->composite);
  EXPECT_EQ(policy_digest(*says->composite), says->policy);
  EXPECT_TRUE(says->runs.empty());
}

TEST(CompositeStatement, WhoseGateWasExchangedIsRefused) {
  Json predicate = composite_statement(closed())->at("predicate");
  predicate["qualify"]["policy"]["gate"]["max_age_seconds"] = 1;
  const auto says = read_certified(predicate);
  ASSERT_FALSE(says);
  EXPECT_EQ(says.error().code, Errc::integrity);
}

TEST(CompositeStatement, NothingOpenIsSigned) {
  CompositeResult result = closed();
  result.parts.pop_back();
  EXPECT_EQ(refusal(result), "1 of 2 parts are cited");
  result = closed();
  result.parts[1].decisions.clear();
  EXPECT_NE(refusal(result).find("not by neither"), std::string::npos);
  result = closed();
  std::swap(result.parts[0], result.parts[1]);
  EXPECT_NE(refusal(result), "taken");
  result = closed();
  result.bundles.clear();
  EXPECT_NE(refusal(result), "taken");
  result = closed();
  result.gate.kind = policy::GateKind::repeatability;
  result.gate.coverage.clear();
  EXPECT_NE(refusal(result), "taken");
}

}  // namespace
}  // namespace qualify::certify
