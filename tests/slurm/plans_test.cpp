// Plans in which runs share a job or depend on each other's nodes, on the real controller.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "gate.hpp"

namespace qualify::test {
namespace {

using run::event::kEnded;
using run::event::kIntent;
using run::event::kRunning;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

/// Runs of two nodes in a reservation of four.
class Places : public GateTest {
 protected:
  int nodes_of_a_run() const override { return 2; }
  static std::vector<std::string> nodes_of(const run::RunState& run) {
    return run.attempts.back().nodes;
  }
};

TEST_F(Places, RunsOfOneAllocationAreOneJob) {
  request.gate.allocation = policy::Allocation::same;
  grant(reserve());
  const auto outcome = run();
  ASSERT_TRUE(outcome) << outcome.error().describe();
  EXPECT_EQ(outcome->judgement.verdict, policy::Verdict::pass)
      << outcome->judgement.reasons.front();
  EXPECT_THAT(outcome->judgement.limits, Contains(HasSubstr("same allocation")));
  EXPECT_EQ(jobs_submitted(), 1u);
  EXPECT_EQ(nodes_of(outcome->state.runs[0]), nodes_of(outcome->state.runs[1]));
}

TEST_F(Places, DisjointRunsAreOnNodesOfTheirOwn) {
  request.gate.nodes = policy::NodeChoice::disjoint;
  grant(reserve());
  const auto outcome = run();
  ASSERT_TRUE(outcome) << outcome.error().describe();
  EXPECT_EQ(outcome->judgement.verdict, policy::Verdict::pass)
      << outcome->judgement.reasons.front();
  EXPECT_THAT(nodes_of(outcome->state.runs[0]), ElementsAre("gpu0001", "gpu0002"));
  EXPECT_THAT(nodes_of(outcome->state.runs[1]), ElementsAre("gpu0003", "gpu0004"));
  EXPECT_EQ(jobs_submitted(), 2u);
}

TEST_F(Places, AfterANodeDiedTheRunIsTriedOnOthers) {
  request.gate.arm = "held";
  request.gate.nodes = policy::NodeChoice::same;
  grant(reserve());
  at(kRunning, [&] {
    wait_until_training("a");
    kill_daemon("gpu0002");
    at(kRunning, [&] { release(); });
  });
  const auto outcome = run();
  ASSERT_TRUE(outcome) << outcome.error().describe();
  EXPECT_EQ(outcome->judgement.verdict, policy::Verdict::pass)
      << outcome->judgement.reasons.front();
  const auto& attempts = outcome->state.runs[0].attempts;
  ASSERT_THAT(attempts, SizeIs(2));
  EXPECT_EQ(attempts[0].failure_class, run::FailureClass::infrastructure);
  EXPECT_THAT(attempts[0].nodes, ElementsAre("gpu0001", "gpu0002"));
  EXPECT_THAT(attempts[1].nodes, ElementsAre("gpu0003", "gpu0004"));
  EXPECT_EQ(nodes_of(outcome->state.runs[1]), attempts[1].nodes) << "the gate asks for the same";
  EXPECT_GT(attempts[0].gpu_seconds, 0);
  EXPECT_EQ(jobs_submitted(), 3u);
}

TEST_F(Places, AWorkloadThatHangsIsCancelledAndItsEvidenceKept) {
  request.gate.arm = "held";
  request.gate.heartbeat = std::chrono::seconds(3);
  grant(reserve());
  const auto outcome = run();
  ASSERT_TRUE(outcome) << outcome.error().describe();
  EXPECT_EQ(outcome->judgement.verdict, policy::Verdict::inconclusive);
  ASSERT_THAT(events(kEnded), SizeIs(2));
  for (const Json& end : events(kEnded)) {
    EXPECT_EQ(end.at("failure_class"), "workload");
    EXPECT_THAT(end.at("failure").get<std::string>(), HasSubstr("hung: no new iteration for"));
    EXPECT_EQ(end.at("job").at("state"), "cancelled");
  }
  for (const run::RunState& run : outcome->state.runs) EXPECT_TRUE(run.evidence);
  EXPECT_EQ(jobs_submitted(), 2u);
}

}  // namespace
}  // namespace qualify::test
