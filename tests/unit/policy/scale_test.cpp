#include "equal_runs.hpp"

namespace qualify::policy {
namespace {

/// Two equal runs on two nodes of eight GPUs each, as the gate asks.
class ScaleJudge : public EqualRuns {
 protected:
  ScaleJudge() {
    gate.kind = GateKind::scale;
    gate.scale = {2, 8};
    for (RunEvidence& run : runs) run.nodes = run.seen_nodes = {"n1", "n2"};
  }
  void tell_gpus(RunEvidence& run, std::size_t on_each) {
    for (const std::string& node : run.nodes) {
      for (std::size_t gpu = 0; gpu < on_each; ++gpu) {
        GpuReading reading;
        reading.node = node;
        reading.uuid = "GPU-" + node + "-" + std::to_string(gpu);
        run.gpus.push_back(reading);
        reading.after = true;
        run.gpus.push_back(reading);
      }
    }
  }
};

TEST_F(ScaleJudge, PassesAtExactlyItsTopologyAndSaysSo) {
  const auto judgement = judged();
  ASSERT_EQ(judgement.verdict, Verdict::pass) << judgement.reasons.front();
  EXPECT_THAT(judgement.reasons.front(), HasSubstr("at 2 nodes x 8 GPUs are equal bit for bit"));
  EXPECT_THAT(judgement.limits, Contains(HasSubstr("not every node's driver told")));
}

TEST_F(ScaleJudge, FewerOrMoreNodesThanNamedNeverPass) {
  for (const auto& nodes : {std::vector<std::string>{"n1"}, {"n1", "n2", "n3"}, {}}) {
    runs[1].nodes = runs[1].seen_nodes = nodes;
    EXPECT_EQ(judged().verdict, Verdict::inconclusive) << nodes.size();
    EXPECT_THAT(first_reason(), HasSubstr("run b ran on " + std::to_string(nodes.size())));
    EXPECT_THAT(first_reason(), HasSubstr("exactly 2 nodes x 8 GPUs"));
  }
}

TEST_F(ScaleJudge, CountsTheNodesThatAnsweredAndNotOnlyTheSchedulersWord) {
  runs[0].seen_nodes = {"n1"};
  EXPECT_EQ(judged().verdict, Verdict::inconclusive);
  EXPECT_THAT(first_reason(), HasSubstr("1 node by their own account"));
  runs[0].seen_nodes = {"n1", "n9"};
  EXPECT_EQ(judged().verdict, Verdict::inconclusive);
  EXPECT_THAT(first_reason(), HasSubstr("not those of the scheduler"));
}

TEST_F(ScaleJudge, CountsTheGpusThatDriversToldOf) {
  for (RunEvidence& run : runs) tell_gpus(run, 8);
  EXPECT_EQ(judged().verdict, Verdict::pass);
  EXPECT_THAT(judged().limits, Not(Contains(HasSubstr("driver told"))));
  for (RunEvidence& run : runs) run.gpus.clear();
  for (RunEvidence& run : runs) tell_gpus(run, 7);
  EXPECT_EQ(judged().verdict, Verdict::inconclusive);
  EXPECT_THAT(first_reason(), HasSubstr("7 GPUs on node n1"));
}

TEST_F(ScaleJudge, ADifferenceFailsAtAnySize) {
  set(1, "lm loss", 3, 1.0F);
  runs[1].seen_nodes = {"n1"};
  EXPECT_EQ(judged().verdict, Verdict::fail);
}

}  // namespace
}  // namespace qualify::policy
