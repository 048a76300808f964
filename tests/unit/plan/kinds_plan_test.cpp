#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "qualify/plan/plan.hpp"

namespace qualify::plan {
namespace {

using spec::RecipeClass;
using ::testing::HasSubstr;

class KindsPlan : public ::testing::Test {
 protected:
  KindsPlan() {
    gate.name = "g";
    gate.arm = "det";
    gate.required_metrics = {"lm loss"};
    gate.run_limit = std::chrono::minutes(5);
    bundle.name = "b";
    bundle.arms = {{"det", {}, {}, {}}};
    bundle.topology.nodes = 48;
    bundle.topology.gpus_per_node = 8;
    bundle.recipe = RecipeClass::production;
    established = {{"v3", "record", "certificate", sha256("theirs"), "a", sha256("evidence")},
                   bundle.topology,
                   0};
    grant.scheduler = "fake";
  }
  Result<Plan> planned() const { return expand(gate, bundle, grant, established); }
  std::string refusal() const {
    const auto plan = planned();
    return plan ? "planned" : std::string(name_of(plan.error().code)) + ": " + plan.error().message;
  }
  void make_scale(std::uint32_t nodes, std::uint32_t gpus) {
    gate.kind = policy::GateKind::scale;
    gate.scale = {nodes, gpus};
  }

  policy::Gate gate;
  store::Bundle bundle;
  scheduler::Grant grant;
  std::optional<Established> established;
};

TEST_F(KindsPlan, DataThatIsUsedMustLieSomewhere) {
  make_scale(48, 8);
  bundle.data = {{"corpus", "sha256:0", {}, ""}};
  EXPECT_EQ(refusal(), "planned") << "nothing asks where it is";
  bundle.arms[0].arguments = {"--data", "{data.corpus}"};
  EXPECT_THAT(refusal(), HasSubstr("refused: it is not known where data 'corpus' lies here"));
  bundle.data[0].path = "/data/corpus";
  EXPECT_EQ(refusal(), "planned");
}

TEST_F(KindsPlan, ScaleIsPlannedAtItsTopologyOnly) {
  make_scale(48, 8);
  const auto plan = planned();
  ASSERT_TRUE(plan) << plan.error().describe();
  EXPECT_EQ(plan->runs.size(), 2U);
  EXPECT_EQ(plan->topology.nodes, 48U);
  make_scale(384, 8);
  EXPECT_THAT(refusal(), HasSubstr("refused: it speaks of exactly 384 nodes x 8 GPUs, and"));
  EXPECT_THAT(refusal(), HasSubstr("has 48 nodes x 8 GPUs"));
  make_scale(47, 8);
  EXPECT_THAT(refusal(), HasSubstr("refused")) << "nor does a larger pass close a smaller gate";
  make_scale(48, 4);
  EXPECT_THAT(refusal(), HasSubstr("refused"));
}

TEST_F(KindsPlan, ADebugOrProxyRecipeNeverClosesAProductionGate) {
  make_scale(48, 8);
  gate.recipe = RecipeClass::production;
  EXPECT_TRUE(planned());
  for (const auto recipe : {RecipeClass::proxy, RecipeClass::debug}) {
    bundle.recipe = recipe;
    EXPECT_THAT(refusal(), HasSubstr("refused"));
    EXPECT_THAT(refusal(), HasSubstr("never closes a gate that asks for production"));
  }
  gate.recipe = RecipeClass::proxy;
  EXPECT_THAT(refusal(), HasSubstr("a debug recipe"));
  bundle.recipe = RecipeClass::proxy;
  EXPECT_TRUE(planned());
}

TEST_F(KindsPlan, BindsTheBaselineAndItsEvidence) {
  gate.kind = policy::GateKind::baseline;
  gate.baseline = "v3";
  const auto plan = planned();
  ASSERT_TRUE(plan) << plan.error().describe();
  ASSERT_TRUE(plan->baseline);
  EXPECT_EQ(plan->baseline->certificate, "certificate");
  EXPECT_EQ(plan->baseline->evidence, sha256("evidence"));
  const auto back = plan_from_json(to_json(*plan));
  ASSERT_TRUE(back) << back.error().describe();
  EXPECT_EQ(plan_digest(*back), plan_digest(*plan));
  EXPECT_EQ(to_json(*back), to_json(*plan));
  established->baseline.evidence = sha256("other evidence");
  EXPECT_NE(plan_digest(*planned()), plan_digest(*plan));
}

TEST_F(KindsPlan, RefusesABaselineThatCannotBeComparedWith) {
  gate.kind = policy::GateKind::baseline;
  gate.baseline = "v3";
  established->topology.tensor_parallel = 2;
  EXPECT_THAT(refusal(), HasSubstr("48 nodes x 8 GPUs TP 2, not 48 nodes x 8 GPUs"));
  established->topology = bundle.topology;
  established->seed = 7;
  EXPECT_THAT(refusal(), HasSubstr("seed 7"));
  established.reset();
  EXPECT_THAT(refusal(), HasSubstr("baseline 'v3' is not there"));
}

TEST_F(KindsPlan, GatesWithoutRunsAreNotPlanned) {
  for (const auto kind : {policy::GateKind::coverage, policy::GateKind::enablement}) {
    gate.kind = kind;
    EXPECT_THAT(refusal(), HasSubstr("has no runs: it rests on other gates"));
  }
}

TEST_F(KindsPlan, OfAnEarlierVersionKeepsItsForm) {
  const Json json = to_json(*planned());
  EXPECT_FALSE(json.contains("baseline"));
}

}  // namespace
}  // namespace qualify::plan
