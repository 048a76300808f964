#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "qualify/plan/plan.hpp"

namespace qualify::plan {
namespace {

using ::testing::HasSubstr;

policy::Gate gate_of() {
  policy::Gate gate;
  gate.name = "localize";
  gate.kind = policy::GateKind::localization;
  gate.run_limit = std::chrono::minutes(5);
  gate.localization.traced_arm = "traced";
  gate.localization.untraced_arm = "plain";
  gate.localization.ranks = 16;
  gate.localization.overhead_below = 1.01;
  gate.localization.planted = {{"bit", 7, "backward", "w", {2}, "op"},
                               {"sum", 9, "reduce", "g", {0, 1}, "collective"}};
  return gate;
}

store::Bundle bundle_of() {
  store::Bundle bundle;
  for (const char* arm : {"traced", "plain", "bit", "sum"})
    bundle.arms.push_back({arm, {}, {}, {}});
  spec::Output traces;
  traces.kind = "trace";
  traces.path = "traces";
  traces.required = false;
  bundle.outputs = {traces};
  bundle.topology.nodes = 2;
  bundle.launch.tasks_per_node = 8;
  return bundle;
}

Result<Plan> plan_of(const policy::Gate& gate, const store::Bundle& bundle = bundle_of()) {
  scheduler::Grant grant;
  grant.gate = gate.name;
  grant.scheduler = "fake";
  return expand(gate, bundle, grant);
}

std::string refusal(const policy::Gate& gate, const store::Bundle& bundle = bundle_of()) {
  const auto plan = plan_of(gate, bundle);
  return plan ? "it is planned" : plan.error().message;
}

TEST(LocalizationPlan, PlantsFirstAndThenTimesPairs) {
  const Plan planned = plan_of(gate_of()).value();
  std::vector<std::string> ids;
  for (const plan::Run& run : planned.runs) ids.push_back(run.id + "=" + run.arm);
  EXPECT_THAT(ids, ::testing::ElementsAre(
                       "planted-1=bit", "planted-2=sum", "pair-1-traced=traced",
                       "pair-1-untraced=plain", "pair-2-untraced=plain", "pair-2-traced=traced",
                       "placebo-1-first=plain", "placebo-1-second=plain", "pair-3-traced=traced",
                       "pair-3-untraced=plain", "pair-4-untraced=plain", "pair-4-traced=traced"));
  EXPECT_EQ(plan_digest(plan_from_json(to_json(planned)).value()), plan_digest(planned));
}

TEST(LocalizationPlan, TheJudgeIsAskedAtEachRegisteredLook) {
  policy::Gate gate = gate_of();
  gate.looks = {{4, 0.01}, {6, 0.04}};
  gate.pairs = 6;
  const Plan plan = plan_of(gate).value();
  EXPECT_EQ(stages(gate, plan), (std::vector<std::size_t>{12, 16}));
}

TEST(LocalizationPlan, RefusesWhatCannotBeJudged) {
  policy::Gate gate = gate_of();
  gate.localization.planted[1].arm = "nobody";
  EXPECT_THAT(refusal(gate), HasSubstr("asks for arm 'nobody'"));
  gate = gate_of();
  gate.localization.ranks = 15;
  EXPECT_THAT(refusal(gate), HasSubstr("traces of 15 ranks"));
  store::Bundle bundle = bundle_of();
  bundle.outputs[0].required = true;
  EXPECT_THAT(refusal(gate_of(), bundle), HasSubstr("the untraced arm"));
  bundle.outputs.clear();
  EXPECT_THAT(refusal(gate_of(), bundle), HasSubstr("declares none"));
}

TEST(LocalizationPlan, ACaptureIsItsTwoArmsOnce) {
  policy::Gate gate = gate_of();
  gate.localization = {};
  gate.localization.capture = policy::Capture{"localize", "traced", "bit", {}, {"n1"}, {"n2"}};
  const Plan plan = plan_of(gate).value();
  ASSERT_EQ(plan.runs.size(), 2U);
  EXPECT_EQ(plan.runs[0].id, "a");
  EXPECT_EQ(plan.runs[0].arm, "traced");
  EXPECT_EQ(plan.runs[1].arm, "bit");
  const Plan back = plan_from_json(to_json(plan)).value();
  EXPECT_EQ(back.runs[0].nodes, std::vector<std::string>{"n1"});
  EXPECT_EQ(back.runs[1].nodes, std::vector<std::string>{"n2"});
  EXPECT_EQ(stages(gate, plan), (std::vector<std::size_t>{2}));
}

}  // namespace
}  // namespace qualify::plan
