#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "qualify/plan/plan.hpp"

namespace qualify::plan {
namespace {

policy::Gate gate_of(std::uint32_t pairs, std::vector<statistics::Look> looks = {}) {
  policy::Gate gate;
  gate.name = "cost";
  gate.kind = policy::GateKind::performance;
  gate.deterministic_arm = "det";
  gate.nondeterministic_arm = "fast";
  gate.pairs = pairs;
  gate.looks = std::move(looks);
  gate.run_limit = std::chrono::minutes(5);
  return gate;
}

Plan plan_of(const policy::Gate& gate) {
  store::Bundle bundle;
  bundle.arms = {{"det", {}, {}, {}}, {"fast", {}, {}, {}}};
  scheduler::Grant grant;
  grant.gate = gate.name;
  grant.scheduler = "fake";
  return expand(gate, bundle, grant).value();
}

std::vector<std::string> ids(const Plan& plan) {
  std::vector<std::string> all;
  for (const Run& run : plan.runs) all.push_back(run.id);
  return all;
}

TEST(PerformancePlan, AlternatesTheOrderAndPutsThePlaceboInTheMiddle) {
  const Plan plan = plan_of(gate_of(4));
  EXPECT_EQ(ids(plan),
            (std::vector<std::string>{"pair-1-det", "pair-1-nondet", "pair-2-nondet", "pair-2-det",
                                      "placebo-1-first", "placebo-1-second", "pair-3-det",
                                      "pair-3-nondet", "pair-4-nondet", "pair-4-det"}));
  EXPECT_EQ(plan.runs[4].arm, "fast");
  EXPECT_EQ(plan.runs[5].arm, "fast");
  EXPECT_EQ(plan.runs[4].pair, 5U);
}

TEST(PerformancePlan, OnePairStillHasItsPlacebo) {
  EXPECT_EQ(plan_of(gate_of(1)).runs.size(), 4U);
  policy::Gate bare = gate_of(1);
  bare.placebo_pairs = 0;
  EXPECT_EQ(plan_of(bare).runs.size(), 2U);
}

TEST(PerformancePlan, TheJudgeIsAskedAtEachRegisteredLook) {
  const auto gate = gate_of(6, {{4, 0.01}, {6, 0.04}});
  const Plan plan = plan_of(gate);
  ASSERT_EQ(plan.runs.size(), 14U);
  EXPECT_EQ(stages(gate, plan), (std::vector<std::size_t>{10, 14}));
  EXPECT_EQ(plan.runs[9].id, "pair-4-det");
  EXPECT_EQ(stages(gate_of(4), plan_of(gate_of(4))), (std::vector<std::size_t>{10}));
}

TEST(PerformancePlan, SurvivesItsRecord) {
  const Plan plan = plan_of(gate_of(6, {{4, 0.01}, {6, 0.04}}));
  EXPECT_EQ(plan_digest(plan_from_json(to_json(plan)).value()), plan_digest(plan));
}

}  // namespace
}  // namespace qualify::plan
